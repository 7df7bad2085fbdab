/*!
 * \file cluster.h
 * \brief The barrier of a cluster of blocks, and the number of a block in it (sm_90).
 *
 * Threads of a warp may come to the barrier one by one.
 */
#pragma once

namespace tl {

/*! \brief Arrive without making earlier writes visible to the others. */
inline __device__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

inline __device__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

/*! \brief Wait until all threads of the cluster have arrived. */
inline __device__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

inline __device__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

inline __device__ int block_rank_in_cluster() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

}  // namespace tl
