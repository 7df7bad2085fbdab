/*!
 * \file scheduler.cc
 * \brief Runs the threads of a block in turn, each as a fiber.
 */
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

#include "block.h"
#include "fault.h"
#include "memory.h"
#include "report.h"
#include "scheduler.h"

namespace tl_emu {

Block block;
bool abandoned;

extern "C" {
alignas(1024) unsigned char tl_emu_arena[kMaxSharedBytes + 1024];
Index3 tl_emu_thread_idx;
Index3 tl_emu_block_idx;
Index3 tl_emu_block_dim;
Index3 tl_emu_grid_dim;
unsigned tl_emu_linear_thread;
}

namespace {

constexpr unsigned kAtomicsInTurn = 64;
// So many atomics without a thread that exits or passes a barrier are a loop without end.
constexpr unsigned kMaxIdleAtomics = 20000000;

std::mutex launch_mutex;
void (*kernel_body)(const uint64_t*);
const uint64_t* kernel_slots;

void Resume(Thread* thread) {
  block.current = thread;
  tl_emu_thread_idx = thread->index;
  tl_emu_linear_thread = thread->linear;
  SwitchFiber(&block.scheduler, &thread->fiber);
  block.current = nullptr;
}

/*! \brief Run the lanes of a warp until each of them waits for something; whether any ran. */
bool RunWarp(unsigned warp) {
  unsigned begin = warp * kWarpSize;
  unsigned end = begin + kWarpSize;
  if (end > block.threads.size()) end = static_cast<unsigned>(block.threads.size());
  bool any = false;
  for (bool ran = true; ran;) {
    ran = false;
    for (unsigned i = begin; i < end && !abandoned; ++i) {
      if (block.threads[i].state != State::kReady) continue;
      Resume(&block.threads[i]);
      any = true;
      // A lane that is still ready waits in a loop for what another warp does.
      ran |= block.threads[i].state != State::kReady;
    }
    if (!ran && !abandoned) ran = ResolveActiveMask(warp);
    any |= ran;
  }
  return any;
}

bool AtGridBarrier() {
  for (const Thread& thread : block.threads) {
    if (thread.state != State::kGrid && thread.state != State::kExited) return false;
  }
  return true;
}

Index3 Extents(const int64_t (&extents)[3]) {
  return {static_cast<unsigned>(extents[0]), static_cast<unsigned>(extents[1]),
          static_cast<unsigned>(extents[2])};
}

}  // namespace

void RunThread() {
  kernel_body(kernel_slots);
  Thread* thread = block.current;
  thread->state = State::kExited;
  --block.live;
  block.idle_atomics = 0;
  OnThreadExit(thread);
  SwitchFiber(&thread->fiber, &block.scheduler);
}

bool RunBlock() {
  unsigned warps = static_cast<unsigned>((block.threads.size() + kWarpSize - 1) / kWarpSize);
  while (block.live > 0 && !abandoned) {
    bool progress = false;
    for (unsigned warp = 0; warp < warps && !abandoned; ++warp) progress |= RunWarp(warp);
    if (progress || abandoned) continue;
    if (AtGridBarrier()) return false;
    Report("deadlock", "", BlockText() + " hangs: " + DescribeWaiting());
    abandoned = true;
  }
  return true;
}

void Suspend() { SwitchFiber(&block.current->fiber, &block.scheduler); }

void YieldSometimes() {
  if (++block.idle_atomics % kAtomicsInTurn != 0) return;
  if (block.idle_atomics > kMaxIdleAtomics) {
    Report("livelock", "", BlockText() + " makes no progress: threads wait in a loop of atomics, " +
                               DescribeWaiting());
    AbandonLaunch();
  }
  Suspend();
}

void AbandonLaunch() {
  abandoned = true;
  SwitchFiber(&block.current->fiber, &block.scheduler);
  __builtin_unreachable();
}

std::string BlockText() {
  const Index3& at = tl_emu_block_idx;
  return "block (" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " +
         std::to_string(at.z) + ")";
}

std::string ThreadText(const Thread& thread) {
  return BlockText() + ", thread " + std::to_string(thread.linear);
}

extern "C" {

int tl_emu_launch(const Launch* launch, void (*body)(const uint64_t*)) {
  std::lock_guard<std::mutex> lock(launch_mutex);
  ClearReports();
  block.launch = launch;
  block.checks = launch->checks;
  abandoned = false;
  tl_emu_block_dim = Extents(launch->block);
  tl_emu_grid_dim = Extents(launch->grid);
  size_t count = size_t{tl_emu_block_dim.x} * tl_emu_block_dim.y * tl_emu_block_dim.z;
  kernel_body = body;
  MemoryScope memory(*launch);
  kernel_slots = memory.slots();
  FaultScope faults;
  RunGrid(*launch, count);
  block.threads.clear();
  std::fflush(stdout);  // what the kernel has printed comes before what the caller prints
  return HasReports() ? 1 : 0;
}

void tl_emu_trap(const char* message) {
  Fail("trap", ThreadText(*block.current) + ": " + message +
                   " at " + At(__builtin_return_address(0)));
}

void tl_emu_misaligned(const void* address, size_t bytes) {
  Fail("alignment", ThreadText(*block.current) + ": an access of " + std::to_string(bytes) +
                        " bytes is " +
                        std::to_string(reinterpret_cast<uintptr_t>(address) % bytes) +
                        " past a multiple of them, at " + At(__builtin_return_address(0)));
}

uint64_t tl_emu_clock() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // extern "C"

}  // namespace tl_emu
