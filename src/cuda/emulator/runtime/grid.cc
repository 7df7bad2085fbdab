/*!
 * \file grid.cc
 * \brief The blocks of a launch, one after another; barriers of the grid put blocks aside.
 */
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "memory.h"
#include "report.h"
#include "scheduler.h"

namespace tl_emu {
namespace {

// A thread of a device has up to 512 KiB of local memory. Only pages that are touched cost memory.
constexpr size_t kStackBytes = 1024 * 1024;
constexpr size_t kGuardedBlocks = 8;

/*! \brief Stacks of the fibers of a block, each with an unmapped page below it if guarded. */
class Stacks {
 public:
  Stacks(size_t count, bool guarded) : bytes_(count * kStackBytes) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    base_ = static_cast<char*>(memory);
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (size_t i = 0; guarded && i < count; ++i) mprotect(base_ + i * kStackBytes, page_, PROT_NONE);
  }
  ~Stacks() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  bool valid() const { return base_ != nullptr; }
  const char* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  char* Of(size_t i) const { return base_ + i * kStackBytes + page_; }
  size_t usable() const { return kStackBytes - page_; }

 private:
  char* base_ = nullptr;
  size_t bytes_;
  size_t page_ = 0;
};

/*! \brief A block that waits at a grid barrier. */
struct Parked {
  BlockState state;
  BlockMemory memory;
  std::unique_ptr<Stacks> stacks;
  Index3 index;
};

class Grid {
 public:
  Grid(const Launch& launch, size_t threads) : launch_(launch), threads_(threads) {}

  void Run() {
    StartAll();
    while (!parked_.empty() && !abandoned) Continue();
  }

 private:
  void StartAll() {
    for (int64_t z = 0; z < launch_.grid[2]; ++z) {
      for (int64_t y = 0; y < launch_.grid[1]; ++y) {
        for (int64_t x = 0; x < launch_.grid[0] && !abandoned; ++x) {
          tl_emu_block_idx = {static_cast<unsigned>(x), static_cast<unsigned>(y),
                              static_cast<unsigned>(z)};
          if (!MakeStacks()) return;
          StartThreads();
          BeginBlock();
          RunOrPark();
        }
      }
    }
  }

  /*! \brief All blocks have come to the barrier: let them run up to the next one. */
  void Continue() {
    if (finished_ > 0) {
      Report("deadlock", "", std::to_string(parked_.size()) + " blocks wait at a barrier of the "
             "grid, and " + std::to_string(finished_) + " have ended without it");
      abandoned = true;
      return;
    }
    std::vector<Parked> waiting = std::move(parked_);
    parked_.clear();
    for (Parked& parked : waiting) {
      static_cast<BlockState&>(block) = std::move(parked.state);
      stacks_ = std::move(parked.stacks);
      tl_emu_block_idx = parked.index;
      SetStacks(stacks_->base(), stacks_->bytes());
      RestoreMemory(std::move(parked.memory));
      for (Thread& thread : block.threads) {
        if (thread.state == State::kGrid) thread.state = State::kReady;
      }
      RunOrPark();
      if (abandoned) return;
    }
  }

  void RunOrPark() {
    bool ended = RunBlock();
    if (abandoned || ended) {
      ++finished_;
      EndBlock();
      return;
    }
    BlockMemory memory = SaveMemory();
    parked_.push_back({std::move(static_cast<BlockState&>(block)), std::move(memory),
                       std::move(stacks_), tl_emu_block_idx});
  }

  bool MakeStacks() {
    if (stacks_) return true;
    // A process has a limited number of mappings, and each guard makes two of one.
    stacks_.reset(new Stacks(threads_, parked_.size() < kGuardedBlocks));
    if (!stacks_->valid()) {
      Report("launch", "", "out of memory for the stacks of " + std::to_string(threads_) +
                               " threads");
      abandoned = true;
      return false;
    }
    SetStacks(stacks_->base(), stacks_->bytes());
    return true;
  }

  void StartThreads() {
    if (block.threads.size() != threads_) block.threads = std::vector<Thread>(threads_);
    unsigned x = 0, y = 0, z = 0;
    for (size_t i = 0; i < block.threads.size(); ++i) {
      Thread& thread = block.threads[i];
      thread.linear = static_cast<unsigned>(i);
      thread.index = {x, y, z};
      thread.state = State::kReady;
      thread.open_group = 0;
      thread.copies.clear();
      PrepareFiber(&thread.fiber, RunThread, stacks_->Of(i), stacks_->usable());
      if (++x == tl_emu_block_dim.x) {
        x = 0;
        if (++y == tl_emu_block_dim.y) {
          y = 0;
          ++z;
        }
      }
    }
    block.live = static_cast<unsigned>(block.threads.size());
    block.idle_atomics = 0;
    for (Barrier& barrier : block.barriers) barrier = Barrier();
  }

  const Launch& launch_;
  size_t threads_;
  std::unique_ptr<Stacks> stacks_;
  std::vector<Parked> parked_;
  size_t finished_ = 0;
};

}  // namespace

void RunGrid(const Launch& launch, size_t threads) { Grid(launch, threads).Run(); }

extern "C" void tl_emu_grid_barrier() {
  block.current->pc = __builtin_return_address(0);
  block.current->state = State::kGrid;
  OnGridBarrier();
  Suspend();
}

}  // namespace tl_emu
