/*!
 * \file cluster.h
 * \brief The barrier of a cluster, emulated for clusters of one block; the twin of
 *        templates/tl/cluster.h.
 *
 * The launcher refuses larger clusters of kernels that include this.
 */
#pragma once

#include "emulator/builtins.h"

namespace tl {

inline void cluster_arrive_relaxed() {}
inline void cluster_arrive() {}
inline void cluster_wait(int site = __builtin_LINE()) { __syncthreads(site); }
inline void cluster_sync(int site = __builtin_LINE()) { __syncthreads(site); }
inline int block_rank_in_cluster() { return 0; }

}  // namespace tl
