/*!
 * \file runtime.h
 * \brief What an emulated kernel calls: the C interface of the emulator's runtime.
 *
 * The runtime is compiled once per machine and linked into the shared object of every kernel.
 * Functions that several threads of a warp or block execute together suspend the calling thread (a
 * fiber) until the others have arrived, and act once for all of them.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace tl_emu {

/*! \brief Bytes of shared memory a block may have (sm_90), and of the arena that holds them. */
constexpr size_t kMaxSharedBytes = 227 * 1024;

/*! \brief An instruction that the lanes of a warp execute together. */
enum class WarpOp : uint32_t {
  kSync,
  kShuffle,
  kBallot,
  kMatchAny,
  kMatchAll,
  kActiveMask,
  kLoadMatrix,
  kStoreMatrix,
  kMma,
};

enum class Vote : uint32_t { kNone, kCount, kAnd, kOr };

/*! \brief Element types of matrix operands. */
enum class Element : uint8_t {
  kF16, kBF16, kTF32, kF64, kS8, kU8, kS4, kU4, kE4M3, kE5M2, kF32, kS32,
};

/*! \brief One matrix instruction: shape and types of D (and C), A and B. */
struct MmaShape {
  int m, n, k;
  Element d, a, b;
};

/*! \brief Memory orders of atomics; values as in __atomic_*. */
enum class Order : int { kRelaxed = 0, kAcquire = 2, kRelease = 3, kAcqRel = 4, kSeqCst = 5 };

/*! \brief A tensor of a launch: argument number `slot`. */
struct Region {
  uint64_t address;
  uint64_t bytes;
  int64_t slot;
  const char* name;
};

/*! \brief A launch: extents, argument words and what is known about memory. */
struct Launch {
  const uint64_t* slots;
  int64_t num_slots;
  int64_t grid[3];
  int64_t block[3];
  int64_t dynamic_shared;
  const Region* regions;
  int64_t num_regions;
  uint32_t checks;       // of enum Check in runtime/report.h
  uint32_t open_memory;  // memory outside of the regions may be accessed
};

extern "C" {
extern unsigned char tl_emu_arena[];

// The calling thread; the variables are rewritten whenever another fiber runs.
struct Index3 {
  unsigned x, y, z;
};
extern Index3 tl_emu_thread_idx;
extern Index3 tl_emu_block_idx;
extern Index3 tl_emu_block_dim;
extern Index3 tl_emu_grid_dim;
extern unsigned tl_emu_linear_thread;

int tl_emu_launch(const Launch* launch, void (*body)(const uint64_t* slots));

// Barriers of a block. `count` 0 means all threads that have not exited.
int tl_emu_barrier(int id, int count, bool wait, Vote vote, bool predicate, int site);

/*! \brief Barrier of all blocks of the launch. */
void tl_emu_grid_barrier();

// Warp collectives.
void tl_emu_sync_warp(uint32_t mask);
void tl_emu_shuffle(uint32_t mask, void* value, size_t bytes, int source);
uint32_t tl_emu_ballot(uint32_t mask, bool predicate);
uint32_t tl_emu_match(uint32_t mask, const void* value, size_t bytes, bool all);
uint32_t tl_emu_active_mask();
void tl_emu_load_matrix(void* registers, const void* row, int count, bool transposed);
void tl_emu_store_matrix(void* row, const void* registers, int count, bool transposed);
void tl_emu_mma(const MmaShape* shape, void* c, const void* a, const void* b);

// Asynchronous copies.
void tl_emu_copy_async(void* target, const void* source, size_t bytes, size_t read_bytes);
void tl_emu_copy_commit();
void tl_emu_copy_wait(int pending);

// Atomics bracket their memory access, so that it is no race with other atomics.
void tl_emu_atomic(const void* address, size_t bytes, bool writes, Order order);
void tl_emu_fence();

[[noreturn]] void tl_emu_trap(const char* message);
[[noreturn]] void tl_emu_misaligned(const void* address, size_t bytes);
uint64_t tl_emu_clock();
}

}  // namespace tl_emu
