/*!
 * \file pool.h
 * \brief The thread pool that runs the blocks of CPU kernels.
 */
#ifndef TILELANG_CPU_RUNTIME_POOL_H_
#define TILELANG_CPU_RUNTIME_POOL_H_

#include <cstddef>
#include <cstdint>

namespace tilelang {
namespace cpu {

/*! \brief Runs block ids [begin, end); must not throw. */
using RangeFn = void (*)(void* context, int64_t begin, int64_t end);

/*! \brief Use `n` threads from now on; 0 follows torch's thread count. */
void SetNumThreads(int n);

/*! \brief Threads the next call from this thread will use, itself included. */
int NumThreads();

/*!
 * \brief Run [0, total) in chunks on up to `num_threads` threads, the caller among them.
 *
 * Runs in the caller alone when it is itself inside a parallel region, or when another thread has
 * the pool. Returns when every block has finished.
 */
void ParallelFor(int64_t total, int num_threads, RangeFn fn, void* context);

/*! \brief Scratch memory of this thread for the time of one worker call; nests. */
class ScratchScope {
 public:
  explicit ScratchScope(size_t bytes);
  ~ScratchScope();
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

  /*! \brief 64-byte aligned, uninitialised; null if no bytes were asked for. */
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  bool entered_ = false;
};

}  // namespace cpu
}  // namespace tilelang
#endif  // TILELANG_CPU_RUNTIME_POOL_H_
