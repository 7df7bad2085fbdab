/*!
 * \file scheduler.cc
 * \brief Runs the blocks of a launch one after another, each thread as a fiber.
 */
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "block.h"
#include "memory.h"
#include "report.h"

namespace tl_emu {

Block block;

extern "C" {
alignas(1024) unsigned char tl_emu_arena[kMaxSharedBytes + 1024];
Index3 tl_emu_thread_idx;
Index3 tl_emu_block_idx;
Index3 tl_emu_block_dim;
Index3 tl_emu_grid_dim;
unsigned tl_emu_linear_thread;
}

namespace {

constexpr size_t kStackBytes = 256 * 1024;
constexpr unsigned kAtomicsInTurn = 64;
// So many atomics without a thread that exits or passes a barrier are a loop without end.
constexpr unsigned kMaxIdleAtomics = 20000000;

std::mutex launch_mutex;
void (*kernel_body)(const uint64_t*);
const uint64_t* kernel_slots;
bool abandoned;

/*! \brief Stacks of the fibers, each with an unmapped page below it. */
class Stacks {
 public:
  explicit Stacks(size_t count) : bytes_(count * kStackBytes) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    base_ = static_cast<char*>(memory);
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < count; ++i) mprotect(base_ + i * kStackBytes, page_, PROT_NONE);
  }
  ~Stacks() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  bool valid() const { return base_ != nullptr; }
  char* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  char* Of(size_t i) const { return base_ + i * kStackBytes + page_; }
  size_t usable() const { return kStackBytes - page_; }

 private:
  char* base_ = nullptr;
  size_t bytes_;
  size_t page_ = 0;
};

void Resume(Thread* thread) {
  block.current = thread;
  tl_emu_thread_idx = thread->index;
  tl_emu_linear_thread = thread->linear;
  SwitchFiber(&block.scheduler, &thread->fiber);
  block.current = nullptr;
}

void RunThread() {
  kernel_body(kernel_slots);
  Thread* thread = block.current;
  thread->state = State::kExited;
  --block.live;
  block.idle_atomics = 0;
  OnThreadExit(thread);
  SwitchFiber(&thread->fiber, &block.scheduler);
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
      ran = true;
    }
    if (!ran && !abandoned) ran = ResolveActiveMask(warp);
    any |= ran;
  }
  return any;
}

void StartThreads(const Stacks& stacks) {
  unsigned x = 0, y = 0, z = 0;
  for (size_t i = 0; i < block.threads.size(); ++i) {
    Thread& thread = block.threads[i];
    thread.linear = static_cast<unsigned>(i);
    thread.index = {x, y, z};
    thread.state = State::kReady;
    thread.open_group = 0;
    thread.copies.clear();
    PrepareFiber(&thread.fiber, RunThread, stacks.Of(i), stacks.usable());
    if (++x == tl_emu_block_dim.x) {
      x = 0;
      if (++y == tl_emu_block_dim.y) {
        y = 0;
        ++z;
      }
    }
  }
  block.live = static_cast<unsigned>(block.threads.size());
  for (Barrier& barrier : block.barriers) barrier = Barrier();
}

void RunBlock(const Stacks& stacks) {
  BeginBlock();
  StartThreads(stacks);
  unsigned warps = static_cast<unsigned>((block.threads.size() + kWarpSize - 1) / kWarpSize);
  while (block.live > 0 && !abandoned) {
    bool progress = false;
    for (unsigned warp = 0; warp < warps && !abandoned; ++warp) progress |= RunWarp(warp);
    if (progress || abandoned) continue;
    Report("deadlock", "", BlockText() + " hangs: " + DescribeWaiting());
    abandoned = true;
  }
  EndBlock();
}

void RunGrid(const Launch& launch, const Stacks& stacks) {
  for (int64_t z = 0; z < launch.grid[2]; ++z) {
    for (int64_t y = 0; y < launch.grid[1]; ++y) {
      for (int64_t x = 0; x < launch.grid[0]; ++x) {
        tl_emu_block_idx = {static_cast<unsigned>(x), static_cast<unsigned>(y),
                            static_cast<unsigned>(z)};
        RunBlock(stacks);
        if (abandoned) return;
      }
    }
  }
}

Index3 Extents(const int64_t (&extents)[3]) {
  return {static_cast<unsigned>(extents[0]), static_cast<unsigned>(extents[1]),
          static_cast<unsigned>(extents[2])};
}

}  // namespace

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
  Stacks stacks(count);
  if (!stacks.valid()) {
    Report("launch", "", "out of memory for the stacks of " + std::to_string(count) + " threads");
    return 1;
  }
  block.threads = std::vector<Thread>(count);
  kernel_body = body;
  MemoryScope memory(*launch, stacks.base(), stacks.bytes());
  kernel_slots = memory.slots();
  RunGrid(*launch, stacks);
  block.threads.clear();
  std::fflush(stdout);  // what the kernel has printed comes before what the caller prints
  return HasReports() ? 1 : 0;
}

void tl_emu_trap(const char* message) {
  Fail("trap", ThreadText(*block.current) + ": " + message +
                   " at " + At(__builtin_return_address(0)));
}

uint64_t tl_emu_clock() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // extern "C"

}  // namespace tl_emu
