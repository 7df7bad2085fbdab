/*!
 * \file sync.h
 * \brief Barriers of a block and of a warp, and fences.
 */
#pragma once

namespace tl {

inline __device__ void sync_threads() { __syncthreads(); }

/*! \brief Barrier `id` (1 to 15) for `count` threads, a multiple of 32: wait for the others. */
inline __device__ void named_barrier_sync(int id, int count) {
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(count) : "memory");
}

/*! \brief Count as arrived at a barrier without waiting for it. */
inline __device__ void named_barrier_arrive(int id, int count) {
  asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(count) : "memory");
}

inline __device__ void sync_threads(int id, int count) { named_barrier_sync(id, count); }

inline __device__ int syncthreads_count(bool predicate) { return __syncthreads_count(predicate); }
inline __device__ int syncthreads_and(bool predicate) { return __syncthreads_and(predicate); }
inline __device__ int syncthreads_or(bool predicate) { return __syncthreads_or(predicate); }

inline __device__ void sync_warp(unsigned mask = 0xffffffffu) { __syncwarp(mask); }

inline __device__ void fence_block() { __threadfence_block(); }
inline __device__ void fence_device() { __threadfence(); }
inline __device__ void fence_system() { __threadfence_system(); }

}  // namespace tl
