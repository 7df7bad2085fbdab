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

/*!
 * \brief Barrier of all blocks; the launch must be cooperative, so that all of them run at once.
 *
 * The driver gives such a launch a word of memory whose address is in two environment registers.
 * Its top bit flips when all blocks have arrived: block 0 adds what is missing to the bit, every
 * other block adds 1.
 */
inline __device__ void sync_grid() {
  __syncthreads();
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    const unsigned long long workspace = static_cast<unsigned long long>(high) << 32 | low;
    if (workspace == 0) __trap();  // the launch is not cooperative
    unsigned* const arrived = reinterpret_cast<unsigned*>(workspace + 4);
    const unsigned others = gridDim.x * gridDim.y * gridDim.z - 1;
    const bool first = blockIdx.x + blockIdx.y + blockIdx.z == 0;
    __threadfence();
    const unsigned before = atomicAdd(arrived, first ? 0x80000000u - others : 1u);
    while (((before ^ *static_cast<volatile unsigned*>(arrived)) & 0x80000000u) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
}
inline __device__ void sync_global() { sync_grid(); }

inline __device__ void sync_warp(unsigned mask = 0xffffffffu) { __syncwarp(mask); }

inline __device__ void fence_block() { __threadfence_block(); }
inline __device__ void fence_device() { __threadfence(); }
inline __device__ void fence_system() { __threadfence_system(); }

}  // namespace tl
