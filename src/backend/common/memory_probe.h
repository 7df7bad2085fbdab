/*!
 * \file memory_probe.h
 * \brief Reading memory that may not exist.
 */
#ifndef TILELANG_BACKEND_COMMON_MEMORY_PROBE_H_
#define TILELANG_BACKEND_COMMON_MEMORY_PROBE_H_

#include <unistd.h>

#include <cstddef>

namespace tilelang {
namespace target {

/*! \brief Copies bytes through a pipe: a bad address gives an error instead of a fault. */
class MemoryProbe {
 public:
  MemoryProbe() { ok_ = pipe(ends_) == 0; }
  ~MemoryProbe() {
    if (!ok_) return;
    close(ends_[0]);
    close(ends_[1]);
  }
  MemoryProbe(const MemoryProbe&) = delete;
  MemoryProbe& operator=(const MemoryProbe&) = delete;

  bool Read(const void* address, void* out, size_t bytes) {
    auto* from = static_cast<const char*>(address);
    auto* to = static_cast<char*>(out);
    while (ok_ && bytes > 0) {
      size_t part = bytes < kChunk ? bytes : kChunk;
      if (write(ends_[1], from, part) != static_cast<ssize_t>(part)) return false;
      if (read(ends_[0], to, part) != static_cast<ssize_t>(part)) return false;
      from += part;
      to += part;
      bytes -= part;
    }
    return ok_;
  }

 private:
  static constexpr size_t kChunk = 4096;  // a pipe takes this much without blocking
  int ends_[2];
  bool ok_;
};

}  // namespace target
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_MEMORY_PROBE_H_
