/*!
 * \file warp.h
 * \brief The lanes that execute one warp instruction together.
 */
#pragma once

#include <cstdint>

#include "block.h"

namespace tl_emu {

class Group {
 public:
  void Add(Thread* thread) {
    threads_[size_++] = thread;
    lanes_ |= 1u << thread->lane();
  }
  Thread* first() const { return threads_[0]; }
  unsigned size() const { return size_; }
  uint32_t lanes() const { return lanes_; }
  Thread* operator[](unsigned i) const { return threads_[i]; }

  template <class Function>
  void ForEach(Function function) const {
    for (unsigned i = 0; i < size_; ++i) function(threads_[i]);
  }

 private:
  Thread* threads_[kWarpSize];
  unsigned size_ = 0;
  uint32_t lanes_ = 0;
};

void LoadMatrix(const Group& group);
void StoreMatrix(const Group& group);
void MultiplyMatrices(const Group& group);

}  // namespace tl_emu
