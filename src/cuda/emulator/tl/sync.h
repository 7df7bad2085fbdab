/*!
 * \file sync.h
 * \brief Barriers and fences, emulated; the twin of templates/tl/sync.h.
 */
#pragma once

#include "emulator/builtins.h"

namespace tl {

// The line of the call tells barriers apart when the threads of a warp meet at different ones.
inline void sync_threads(int site = __builtin_LINE()) { __syncthreads(site); }

inline void named_barrier_sync(int id, int count, int site = __builtin_LINE()) {
  tl_emu::tl_emu_barrier(id, count, true, tl_emu::Vote::kNone, false, site);
}

inline void named_barrier_arrive(int id, int count, int site = __builtin_LINE()) {
  tl_emu::tl_emu_barrier(id, count, false, tl_emu::Vote::kNone, false, site);
}

inline void sync_threads(int id, int count, int site = __builtin_LINE()) {
  named_barrier_sync(id, count, site);
}

inline int syncthreads_count(bool predicate, int site = __builtin_LINE()) {
  return __syncthreads_count(predicate, site);
}
inline int syncthreads_and(bool predicate, int site = __builtin_LINE()) {
  return __syncthreads_and(predicate, site);
}
inline int syncthreads_or(bool predicate, int site = __builtin_LINE()) {
  return __syncthreads_or(predicate, site);
}

inline void sync_grid() { tl_emu::tl_emu_grid_barrier(); }
inline void sync_global() { sync_grid(); }

inline void sync_warp(unsigned mask = 0xffffffffu) { __syncwarp(mask); }

inline void fence_block() { __threadfence_block(); }
inline void fence_device() { __threadfence(); }
inline void fence_system() { __threadfence_system(); }

}  // namespace tl
