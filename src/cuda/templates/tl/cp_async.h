/*!
 * \file cp_async.h
 * \brief Asynchronous copies from global to shared memory (sm_80); done at once where there are none.
 */
#pragma once
#include <tl/memory.h>

namespace tl {

/*!
 * \brief Start copying 4, 8 or 16 bytes; both addresses are multiples of that.
 *
 * Where `valid` is false the target is filled with zeros and the source is not read.
 */
template <int bytes>
inline __device__ void cp_async(void* target, const void* source, bool valid = true) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
#if __CUDA_ARCH__ >= 800
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(target));
  const int read = valid ? bytes : 0;
  if (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(address), "l"(source), "r"(read) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(address), "l"(source), "n"(bytes), "r"(read) : "memory");
  }
#else
  if (valid) {
    vec_copy<bytes>(target, source);
  } else {
    vec_zero<bytes>(target);
  }
#endif
}

/*! \brief Close the group of copies that this thread has started since the last call. */
inline __device__ void cp_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/*! \brief Wait until at most the `pending` newest groups of this thread are under way. */
template <int pending>
inline __device__ void cp_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
#endif
}

}  // namespace tl
