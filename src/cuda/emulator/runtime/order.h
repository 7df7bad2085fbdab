/*!
 * \file order.h
 * \brief Which accesses of the threads of a block are ordered before which.
 *
 * Every thread has a clock that advances at each of its synchronisations. What thread `u` did at
 * clock `c` is ordered before what thread `t` does now if `t` has learned of `c` through barriers,
 * warp barriers or atomics with an order.
 */
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "../tl/emulator/runtime.h"

namespace tl_emu {

class HappensBefore {
 public:
  void Begin(size_t threads);

  uint32_t clock(unsigned thread) const { return clocks_[thread]; }
  /*! \brief Number of the stretch between barriers of the whole block; never used twice. */
  uint32_t interval() const { return interval_; }

  bool IsBefore(unsigned earlier, uint32_t clock, unsigned now) const {
    if (earlier == now || clock <= barrier_[earlier]) return true;
    return !known_[now].empty() && clock <= known_[now][earlier];
  }

  /*! \brief All threads have met. */
  void JoinBlock();
  using Clocks = std::vector<uint32_t>;
  /*! \brief Add what `thread` has done until now to `clocks`. */
  void Release(unsigned thread, Clocks* clocks);
  /*! \brief What `clocks` tell is ordered before what `thread` does next. */
  void Acquire(unsigned thread, const Clocks& clocks);

  void Atomic(unsigned thread, const void* address, bool writes, Order order);
  void Fence(unsigned thread);
  /*! \brief Whether this launch has used a fence or an ordered atomic. */
  bool has_fences() const { return has_fences_; }
  void BeginLaunch() { has_fences_ = false; }

 private:
  /*! \brief Raise `target` to what `thread` knows, itself included. */
  void AddKnowledge(unsigned thread, Clocks* target) const;

  Clocks clocks_;
  Clocks barrier_;
  std::vector<Clocks> known_;                     // empty: nothing beyond the barriers
  std::unordered_map<const void*, Clocks> released_;  // by ordered atomics
  std::vector<Clocks> fenced_;                    // what a thread knew at its last fence
  std::vector<std::vector<const void*>> observed_;  // atomics since the last fence
  uint32_t interval_ = 0;
  bool has_fences_ = false;

  static uint32_t last_interval_;
};

}  // namespace tl_emu
