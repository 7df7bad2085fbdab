/*!
 * \file report.h
 * \brief Findings of a launch, as text for the host.
 *
 * Code addresses are written `@{offset}`, relative to the start of the shared object; the host
 * turns them into lines.
 */
#pragma once

#include <cstdint>
#include <string>

namespace tl_emu {

/*! \brief Optional checks, as bits of Launch::checks; names and values as in checks.py. */
enum Check : uint32_t {
  kCheckRace = 1,
  kCheckBounds = 2,
  kCheckUninit = 4,
  kCheckBanks = 8,
  kCheckCoalesce = 16,
};

/*! \brief `@{offset}` of a code address. */
std::string At(const void* pc);

/*! \brief `3, 5-7` of sorted numbers. */
class NumberList {
 public:
  void Add(unsigned number);
  std::string Text() const;
  unsigned size() const { return size_; }

 private:
  void Flush(std::string* text) const;
  std::string text_;
  unsigned first_ = 0, last_ = 0, size_ = 0;
};

/*! \brief Add a finding; `key` makes equal findings of other threads and blocks count once. */
void Report(const char* kind, const std::string& key, const std::string& message);

/*! \brief Add a finding and stop the launch. Called from a fiber, it does not return. */
[[noreturn]] void Fail(const char* kind, const std::string& message);

bool HasReports();
void ClearReports();

}  // namespace tl_emu
