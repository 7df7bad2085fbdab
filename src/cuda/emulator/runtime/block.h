/*!
 * \file block.h
 * \brief The threads of the block that runs, and what each of them waits for.
 */
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "../tl/emulator/runtime.h"
#include "fiber.h"

namespace tl_emu {

constexpr unsigned kWarpSize = 32;
constexpr int kBarriers = 16;
constexpr size_t kMatrixRowBytes = 16;  // what a lane addresses in ldmatrix
// Memory and registers whose contents are undefined hold this; it is NaN in every format.
constexpr int kUndefinedByte = 0xff;

/*! \brief What a lane brings to a warp instruction, and takes from it. */
struct WarpRequest {
  WarpOp op;
  uint32_t mask;
  uint64_t qualifiers;  // lanes meet only where op, mask and these agree
  void* data = nullptr;
  const void* source = nullptr;
  const void* second = nullptr;
  int64_t value = 0;
  uint32_t result = 0;
};

/*! \brief A copy that has been started: its target is undefined until it is waited for. */
struct AsyncCopy {
  char* target;
  const char* source;
  uint32_t bytes, read_bytes;
  int64_t group;
  char data[16];  // the source when the copy started
  const void* pc;
};

enum class State : uint8_t { kReady, kWarp, kBarrier, kGrid, kExited };

struct Thread {
  Fiber fiber;
  State state = State::kExited;
  unsigned linear = 0;
  Index3 index{0, 0, 0};
  const void* pc = nullptr;  // of the call it waits in
  WarpRequest request{};
  int barrier = 0;
  int site = 0;
  int vote_result = 0;
  int64_t open_group = 0;  // number of the group that cp.async copies go to now
  std::deque<AsyncCopy> copies;

  unsigned lane() const { return linear % kWarpSize; }
  unsigned warp() const { return linear / kWarpSize; }
};

struct Barrier {
  int expected = 0;  // 0: all threads that have not exited
  int arrived = 0;
  int held = 0;  // predicates that were true
  std::vector<uint32_t> known;  // clocks that its arrivals know of, see order.h
  std::vector<Thread*> waiting;
};

/*! \brief What belongs to one block and is put aside while others run up to a grid barrier. */
struct BlockState {
  std::vector<Thread> threads;
  unsigned live = 0;
  unsigned idle_atomics = 0;  // since something has happened that a thread may wait for
  Barrier barriers[kBarriers];
};

struct Block : BlockState {
  Thread* current = nullptr;  // nullptr: the scheduler runs
  Fiber scheduler;
  const Launch* launch = nullptr;
  uint32_t checks = 0;
};

extern Block block;

inline bool Checks(uint32_t check) { return (block.checks & check) != 0; }

/*! \brief Let others run; returns when the calling thread is ready again. */
void Suspend();

/*! \brief Let others run now and then, so that waiting in a loop of atomics ends. */
void YieldSometimes();

/*! \brief Give up all fibers of the launch. */
[[noreturn]] void AbandonLaunch();

/*! \brief `block (0, 1, 0)`, and with it `, thread 5`. */
std::string BlockText();
std::string ThreadText(const Thread& thread);

/*! \brief Threads of barrier and warp that may go on because a thread has exited. */
void OnThreadExit(Thread* thread);

/*! \brief Answer lanes that ask who is active, once no lane of the warp can run. */
bool ResolveActiveMask(unsigned warp);

/*! \brief What the threads wait for, one phrase for each group. */
std::string DescribeWaiting();

/*! \brief `ldmatrix`: the name of an instruction in messages. */
const char* NameOf(WarpOp op);

}  // namespace tl_emu
