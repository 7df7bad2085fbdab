/*!
 * \file order.cc
 */
#include "order.h"

#include <algorithm>

namespace tl_emu {
namespace {

void Raise(std::vector<uint32_t>* target, const std::vector<uint32_t>& values) {
  if (target->empty()) {
    *target = values;
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) (*target)[i] = std::max((*target)[i], values[i]);
}

bool Acquires(Order order) {
  return order == Order::kAcquire || order == Order::kAcqRel || order == Order::kSeqCst;
}

bool Releases(Order order) {
  return order == Order::kRelease || order == Order::kAcqRel || order == Order::kSeqCst;
}

}  // namespace

uint32_t HappensBefore::last_interval_ = 0;

void HappensBefore::Begin(size_t threads) {
  clocks_.assign(threads, 1);
  barrier_.assign(threads, 0);
  known_.assign(threads, {});
  fenced_.assign(threads, {});
  observed_.assign(threads, {});
  released_.clear();
  interval_ = ++last_interval_;
}

void HappensBefore::JoinBlock() {
  barrier_ = clocks_;
  for (uint32_t& clock : clocks_) ++clock;
  interval_ = ++last_interval_;
}

void HappensBefore::AddKnowledge(unsigned thread, Clocks* target) const {
  if (!known_[thread].empty()) Raise(target, known_[thread]);
  if (target->empty()) target->assign(clocks_.size(), 0);
  (*target)[thread] = std::max((*target)[thread], clocks_[thread]);
}

void HappensBefore::Release(unsigned thread, Clocks* clocks) {
  AddKnowledge(thread, clocks);
  ++clocks_[thread];
}

void HappensBefore::Acquire(unsigned thread, const Clocks& clocks) {
  Raise(&known_[thread], clocks);
}

void HappensBefore::Atomic(unsigned thread, const void* address, bool writes, Order order) {
  if (order != Order::kRelaxed) has_fences_ = true;
  if (Acquires(order)) {
    auto found = released_.find(address);
    if (found != released_.end()) Acquire(thread, found->second);
  } else {
    observed_[thread].push_back(address);
  }
  if (!writes) return;
  if (Releases(order)) {
    Release(thread, &released_[address]);
  } else if (!fenced_[thread].empty()) {
    Raise(&released_[address], fenced_[thread]);
  }
}

void HappensBefore::Fence(unsigned thread) {
  has_fences_ = true;
  for (const void* address : observed_[thread]) {
    auto found = released_.find(address);
    if (found != released_.end()) Acquire(thread, found->second);
  }
  observed_[thread].clear();
  fenced_[thread].clear();
  Release(thread, &fenced_[thread]);
}

}  // namespace tl_emu
