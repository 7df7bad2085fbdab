/*!
 * \file warp.cc
 * \brief Instructions that the lanes of a warp execute together.
 */
#include "warp.h"

#include <cstring>
#include <string>

#include "block.h"
#include "memory.h"
#include "report.h"

namespace tl_emu {
namespace {

constexpr uint32_t kAllLanes = 0xffffffffu;

struct Name {
  WarpOp op;
  const char* text;
};
constexpr Name kNames[] = {
    {WarpOp::kSync, "a warp barrier"},      {WarpOp::kShuffle, "a shuffle"},
    {WarpOp::kBallot, "a vote"},            {WarpOp::kMatchAny, "match_any"},
    {WarpOp::kMatchAll, "match_all"},       {WarpOp::kActiveMask, "activemask"},
    {WarpOp::kLoadMatrix, "ldmatrix"},      {WarpOp::kStoreMatrix, "stmatrix"},
    {WarpOp::kMma, "a matrix instruction"},
};

bool Agrees(const Thread& thread, const WarpRequest& request) {
  return thread.state == State::kWarp && thread.request.op == request.op &&
         thread.request.mask == request.mask && thread.request.qualifiers == request.qualifiers;
}

void Shuffle(const Group& group) {
  // What is read from a lane that takes no part is undefined.
  unsigned char values[kWarpSize][8];
  size_t bytes = group.first()->request.qualifiers;
  std::memset(values, kUndefinedByte, sizeof(values));
  group.ForEach([&](Thread* t) { std::memcpy(values[t->lane()], t->request.data, bytes); });
  group.ForEach([&](Thread* t) {
    std::memcpy(t->request.data, values[t->request.value & (kWarpSize - 1)], bytes);
  });
}

void Ballot(const Group& group) {
  uint32_t held = 0;
  group.ForEach([&](Thread* t) { held |= static_cast<uint32_t>(t->request.value) << t->lane(); });
  group.ForEach([&](Thread* t) { t->request.result = held; });
}

uint32_t EqualLanes(const Group& group, const Thread* wanted) {
  uint32_t equal = 0;
  size_t bytes = wanted->request.qualifiers;
  group.ForEach([&](Thread* t) {
    if (std::memcmp(t->request.source, wanted->request.source, bytes) == 0) {
      equal |= 1u << t->lane();
    }
  });
  return equal;
}

void MatchAny(const Group& group) {
  group.ForEach([&](Thread* t) { t->request.result = EqualLanes(group, t); });
}

void MatchAll(const Group& group) {
  bool all = EqualLanes(group, group.first()) == group.lanes();
  group.ForEach([&](Thread* t) { t->request.result = all ? group.lanes() : 0; });
}

void Execute(const Group& group) {
  switch (group.first()->request.op) {
    case WarpOp::kSync:
      return OnWarpSync(group);
    case WarpOp::kShuffle:
      return Shuffle(group);
    case WarpOp::kBallot:
      return Ballot(group);
    case WarpOp::kMatchAny:
      return MatchAny(group);
    case WarpOp::kMatchAll:
      return MatchAll(group);
    case WarpOp::kLoadMatrix:
      return LoadMatrix(group);
    case WarpOp::kStoreMatrix:
      return StoreMatrix(group);
    case WarpOp::kMma:
      return MultiplyMatrices(group);
    case WarpOp::kActiveMask:
      return group.ForEach([&](Thread* t) { t->request.result = group.lanes(); });
  }
}

/*! \brief Act if every lane of the mask that has not exited waits in the same instruction. */
void TryComplete(Thread* thread) {
  if (thread->request.op == WarpOp::kActiveMask) return;  // see ResolveActiveMask
  const WarpRequest& request = thread->request;
  Group group;
  unsigned begin = thread->warp() * kWarpSize;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((request.mask >> lane & 1u) == 0 || begin + lane >= block.threads.size()) continue;
    Thread* other = &block.threads[begin + lane];
    if (other->state == State::kExited) continue;
    if (!Agrees(*other, request)) return;
    group.Add(other);
  }
  Execute(group);
  group.ForEach([](Thread* t) { t->state = State::kReady; });
}

uint32_t Collective(const WarpRequest& request, const void* pc) {
  Thread* thread = block.current;
  thread->pc = pc;
  if ((request.mask >> thread->lane() & 1u) == 0) {
    Fail("warp mask", ThreadText(*thread) + ": lane " +
                          std::to_string(thread->lane()) + " executes " + NameOf(request.op) +
                          " with a mask that does not name it, at " + At(pc));
  }
  thread->request = request;
  thread->state = State::kWarp;
  TryComplete(thread);
  if (thread->state != State::kReady) Suspend();
  return thread->request.result;
}

}  // namespace

const char* NameOf(WarpOp op) {
  for (const Name& name : kNames) {
    if (name.op == op) return name.text;
  }
  return "a warp instruction";
}

bool ResolveActiveMask(unsigned warp) {
  unsigned begin = warp * kWarpSize;
  for (unsigned i = begin; i < begin + kWarpSize && i < block.threads.size(); ++i) {
    Thread* first = &block.threads[i];
    if (first->state != State::kWarp || first->request.op != WarpOp::kActiveMask) continue;
    Group group;
    for (unsigned j = i; j < begin + kWarpSize && j < block.threads.size(); ++j) {
      Thread* other = &block.threads[j];
      if (Agrees(*other, first->request)) group.Add(other);
    }
    Execute(group);
    group.ForEach([](Thread* t) { t->state = State::kReady; });
    return true;
  }
  return false;
}

void ReleaseBarriersAfterExit();

void OnThreadExit(Thread* thread) {
  ReleaseBarriersAfterExit();
  unsigned begin = thread->warp() * kWarpSize;
  for (unsigned i = begin; i < begin + kWarpSize && i < block.threads.size(); ++i) {
    if (block.threads[i].state == State::kWarp) TryComplete(&block.threads[i]);
  }
}

extern "C" {

void tl_emu_sync_warp(uint32_t mask) {
  Collective({WarpOp::kSync, mask, 0}, __builtin_return_address(0));
}

void tl_emu_shuffle(uint32_t mask, void* value, size_t bytes, int source) {
  WarpRequest request{WarpOp::kShuffle, mask, bytes};
  request.data = value;
  request.value = source;
  Collective(request, __builtin_return_address(0));
}

uint32_t tl_emu_ballot(uint32_t mask, bool predicate) {
  WarpRequest request{WarpOp::kBallot, mask, 0};
  request.value = predicate;
  return Collective(request, __builtin_return_address(0));
}

uint32_t tl_emu_match(uint32_t mask, const void* value, size_t bytes, bool all) {
  WarpRequest request{all ? WarpOp::kMatchAll : WarpOp::kMatchAny, mask, bytes};
  request.source = value;
  return Collective(request, __builtin_return_address(0));
}

uint32_t tl_emu_active_mask() {
  const void* pc = __builtin_return_address(0);
  return Collective({WarpOp::kActiveMask, kAllLanes, reinterpret_cast<uintptr_t>(pc)}, pc);
}

void tl_emu_load_matrix(void* registers, const void* row, int count, bool transposed) {
  WarpRequest request{WarpOp::kLoadMatrix, kAllLanes,
                      static_cast<uint64_t>(count) << 1 | static_cast<uint64_t>(transposed)};
  request.data = registers;
  request.source = row;
  Collective(request, __builtin_return_address(0));
}

void tl_emu_store_matrix(void* row, const void* registers, int count, bool transposed) {
  WarpRequest request{WarpOp::kStoreMatrix, kAllLanes,
                      static_cast<uint64_t>(count) << 1 | static_cast<uint64_t>(transposed)};
  request.data = row;
  request.source = registers;
  Collective(request, __builtin_return_address(0));
}

void tl_emu_mma(const MmaShape* shape, void* c, const void* a, const void* b) {
  WarpRequest request{WarpOp::kMma, kAllLanes, reinterpret_cast<uintptr_t>(shape)};
  request.data = c;
  request.source = a;
  request.second = b;
  Collective(request, __builtin_return_address(0));
}

}  // extern "C"

}  // namespace tl_emu
