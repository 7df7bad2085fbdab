/*!
 * \file memory.cc
 */
#include "memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "order.h"
#include "report.h"
#include "traffic.h"

extern "C" {
extern char __start_tl_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_tl_shared[] __attribute__((weak, visibility("hidden")));
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
}

namespace tl_emu {
namespace {

// Wide enough for an access that misses a tensor by a row of a tile.
constexpr size_t kGuardBytes = 4096;
constexpr size_t kTensorAlignment = 256;
constexpr uint32_t kCheckShadow = kCheckRace | kCheckUninit;
constexpr uint32_t kCheckTraffic = kCheckBanks | kCheckCoalesce;

/*! \brief A tensor where kernels see it. */
struct Tensor {
  const char* begin;
  size_t bytes;
  const char* name;
};

struct Range {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool Contains(const char* at) const { return at >= begin && at < end; }
  bool Contains(const char* at, size_t bytes) const { return at >= begin && at + bytes <= end; }
};

HappensBefore order;
Shadow shadow(&order);
Traffic traffic;
std::vector<Tensor> tensors;
Range stacks_range;

Range Arena() {
  auto* begin = reinterpret_cast<const char*>(tl_emu_arena);
  return {begin, begin + block.launch->dynamic_shared};
}

Range StaticShared() { return {__start_tl_shared, __stop_tl_shared}; }

/*! \brief All of the arena, whether the launch has asked for it or not. */
Range WholeArena() {
  auto* begin = reinterpret_cast<const char*>(tl_emu_arena);
  return {begin, begin + kMaxSharedBytes};
}

Range Image() { return {__ehdr_start, _end}; }

const Tensor* FindTensor(const char* at) {
  for (const Tensor& tensor : tensors) {
    if (at >= tensor.begin && at < tensor.begin + tensor.bytes) return &tensor;
  }
  return nullptr;
}

std::string AccessText(size_t bytes, Access access, const void* pc) {
  return ThreadText(*block.current) + " " + (access == Access::kRead ? "reads " : "writes ") +
         std::to_string(bytes) + " bytes at " + At(pc);
}

/*! \brief How far behind or before the nearest tensor an address is. */
std::string DistanceText(const char* at) {
  const Tensor* nearest = nullptr;
  std::ptrdiff_t best = 0;
  for (const Tensor& tensor : tensors) {
    std::ptrdiff_t distance =
        at < tensor.begin ? tensor.begin - at : at - (tensor.begin + tensor.bytes);
    if (nearest == nullptr || distance < best) {
      nearest = &tensor;
      best = distance;
    }
  }
  if (nearest == nullptr) return "at an address that belongs to nothing";
  const char* side = at < nearest->begin ? " bytes before the start of '"
                                         : " bytes behind the end of '";
  return std::to_string(best) + side + nearest->name + "', which has " +
         std::to_string(nearest->bytes) + " bytes";
}

[[noreturn]] void FailBounds(const char* at, size_t bytes, Access access, const void* pc) {
  std::string text = AccessText(bytes, access, pc) + ", ";
  if (WholeArena().Contains(at) || at == WholeArena().end) {
    text += "at byte " + std::to_string(at - Arena().begin) + " of shared memory, which has " +
            std::to_string(block.launch->dynamic_shared) + " bytes";
  } else if (const Tensor* tensor = FindTensor(at)) {
    text += "beyond the end of '" + std::string(tensor->name) + "', which has " +
            std::to_string(tensor->bytes) + " bytes";
  } else {
    text += DistanceText(at);
  }
  Fail("out of bounds", text);
}

void CheckBounds(const char* at, size_t bytes, Access access, const void* pc) {
  if (Arena().Contains(at, bytes) || StaticShared().Contains(at, bytes)) return;
  if (WholeArena().Contains(at)) FailBounds(at, bytes, access, pc);
  const Tensor* tensor = FindTensor(at);
  if (tensor != nullptr && at + bytes <= tensor->begin + tensor->bytes) return;
  // Constants and variables of the source; what it is given may be anywhere.
  if (Image().Contains(at) || (block.launch->open_memory != 0 && tensor == nullptr)) return;
  FailBounds(at, bytes, access, pc);
}

}  // namespace

MemoryScope::MemoryScope(const Launch& launch)
    : slots_(launch.slots, launch.slots + launch.num_slots) {
  tensors.clear();
  for (int64_t i = 0; i < launch.num_regions; ++i) {
    const Region& region = launch.regions[i];
    tensors.push_back({reinterpret_cast<const char*>(region.address), region.bytes, region.name});
  }
  if ((launch.checks & kCheckBounds) != 0) GuardTensors(launch);
  order.BeginLaunch();
  shadow.BeginLaunch();
  traffic.BeginLaunch();
}

void MemoryScope::GuardTensors(const Launch& launch) {
  std::vector<size_t> by_address(tensors.size());
  for (size_t i = 0; i < by_address.size(); ++i) by_address[i] = i;
  std::sort(by_address.begin(), by_address.end(),
            [](size_t a, size_t b) { return tensors[a].begin < tensors[b].begin; });
  for (size_t i : by_address) {
    char* begin = const_cast<char*>(tensors[i].begin);
    Guarded* last = guarded_.empty() ? nullptr : &guarded_.back();
    if (last != nullptr && begin < last->original + last->bytes) {
      size_t end = static_cast<size_t>(begin - last->original) + tensors[i].bytes;
      last->bytes = std::max(last->bytes, end);
    } else {
      guarded_.push_back({begin, tensors[i].bytes, nullptr, nullptr});
    }
  }
  for (Guarded& guarded : guarded_) {
    size_t total = guarded.bytes + 2 * kGuardBytes + kTensorAlignment;
    guarded.storage.reset(new char[total]);
    auto start = reinterpret_cast<uintptr_t>(guarded.storage.get()) + kGuardBytes;
    // Alignment stays what it was, so that a misaligned tensor is still one.
    uintptr_t wanted = reinterpret_cast<uintptr_t>(guarded.original) % kTensorAlignment;
    start += (wanted + kTensorAlignment - start % kTensorAlignment) % kTensorAlignment;
    guarded.copy = reinterpret_cast<char*>(start);
    std::memcpy(guarded.copy, guarded.original, guarded.bytes);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (const Guarded& guarded : guarded_) {
      const char* begin = tensors[i].begin;
      if (begin < guarded.original || begin > guarded.original + guarded.bytes) continue;
      if (begin == guarded.original + guarded.bytes && tensors[i].bytes > 0) continue;
      tensors[i].begin = guarded.copy + (begin - guarded.original);
      slots_[static_cast<size_t>(launch.regions[i].slot)] =
          reinterpret_cast<uintptr_t>(tensors[i].begin);
      break;
    }
  }
}

MemoryScope::~MemoryScope() {
  for (const Guarded& guarded : guarded_) {
    std::memcpy(guarded.original, guarded.copy, guarded.bytes);
  }
}

void BeginBlock() {
  std::memset(tl_emu_arena, kUndefinedByte, static_cast<size_t>(block.launch->dynamic_shared));
  if (__start_tl_shared != nullptr) {
    std::memset(__start_tl_shared, kUndefinedByte,
                static_cast<size_t>(__stop_tl_shared - __start_tl_shared));
  }
  if (Checks(kCheckShadow)) {
    order.Begin(block.threads.size());
    shadow.BeginBlock();
  }
  if (Checks(kCheckTraffic)) traffic.BeginBlock(block.threads.size());
}

void EndBlock() {
  if (Checks(kCheckTraffic)) traffic.EndBlock();
}

void SetStacks(const char* begin, size_t bytes) { stacks_range = {begin, begin + bytes}; }

BlockMemory SaveMemory() {
  return {{Arena().begin, Arena().end},
          {StaticShared().begin, StaticShared().end},
          std::move(order),
          shadow.block()};
}

void RestoreMemory(BlockMemory memory) {
  std::copy(memory.dynamic_shared.begin(), memory.dynamic_shared.end(), tl_emu_arena);
  std::copy(memory.static_shared.begin(), memory.static_shared.end(), __start_tl_shared);
  order = std::move(memory.order);
  shadow.ResumeBlock(memory.number);
  if (Checks(kCheckShadow)) order.JoinBlock();
}

void OnGridBarrier() { shadow.OnGridBarrier(); }

bool IsShared(const void* address) {
  auto* at = static_cast<const char*>(address);
  return WholeArena().Contains(at) || StaticShared().Contains(at);
}

std::string PlaceText(const void* address, size_t offset) {
  const char* at = static_cast<const char*>(address) + offset;
  auto byte = [at](const char* begin) { return ", byte " + std::to_string(at - begin); };
  if (WholeArena().Contains(at)) return "shared memory" + byte(WholeArena().begin);
  if (StaticShared().Contains(at)) return "static shared memory" + byte(StaticShared().begin);
  if (const Tensor* tensor = FindTensor(at)) {
    return "'" + std::string(tensor->name) + "'" + byte(tensor->begin);
  }
  return "memory";
}

bool IsStackGuard(const void* address) {
  return stacks_range.Contains(static_cast<const char*>(address));
}

bool IsKernelCode(const void* address) {
  return Image().Contains(static_cast<const char*>(address));
}

uint32_t CodeOffset(const void* pc) {
  return static_cast<uint32_t>(static_cast<const char*>(pc) - __ehdr_start);
}

const void* CodeAddress(uint32_t offset) { return __ehdr_start + offset; }

void OnAccess(const void* address, size_t bytes, Access access, const void* pc) {
  auto* at = static_cast<const char*>(address);
  if (block.current == nullptr || stacks_range.Contains(at)) return;
  if (Checks(kCheckBounds)) CheckBounds(at, bytes, access, pc);
  bool shared = IsShared(at);
  if (!shared && Image().Contains(at)) return;
  if (Checks(kCheckShadow)) {
    shadow.Record({address, bytes, block.current->linear, access, pc, shared});
  }
  if (Checks(shared ? kCheckBanks : kCheckCoalesce)) {
    traffic.Record(*block.current, CodeOffset(pc), address, bytes, shared);
  }
}

void OnArrival(Thread* thread, Barrier* barrier) {
  // A barrier without a count joins the whole block, which needs no clocks of each arrival.
  if (Checks(kCheckShadow) && barrier->expected > 0) order.Release(thread->linear, &barrier->known);
}

void OnBarrier(const Barrier& barrier) {
  if (!Checks(kCheckShadow)) return;
  if (barrier.expected == 0) return order.JoinBlock();
  for (const Thread* thread : barrier.waiting) order.Acquire(thread->linear, barrier.known);
}

void OnWarpSync(const Group& group) {
  if (!Checks(kCheckShadow)) return;
  std::vector<uint32_t> known;
  group.ForEach([&](const Thread* thread) { order.Release(thread->linear, &known); });
  group.ForEach([&](const Thread* thread) { order.Acquire(thread->linear, known); });
}

void OnAsyncStart(const AsyncCopy& copy) {
  if (copy.read_bytes > 0) OnAccess(copy.source, copy.read_bytes, Access::kRead, copy.pc);
  OnAccess(copy.target, copy.bytes, Access::kAsync, copy.pc);
}

void OnAsyncDone(const AsyncCopy& copy) {
  if (!Checks(kCheckShadow)) return;
  shadow.FinishAsync(
      {copy.target, copy.bytes, block.current->linear, Access::kWrite, copy.pc, true});
}

void OnMatrixAccess(const Group& group, unsigned count, bool writes) {
  if (block.checks == 0) return;
  Thread* caller = block.current;
  for (unsigned matrix = 0; matrix < count; ++matrix) {
    const char* rows[8];
    for (unsigned i = 0; i < 8; ++i) {
      Thread* thread = group[8 * matrix + i];
      const void* row = writes ? thread->request.data : thread->request.source;
      rows[i] = static_cast<const char*>(row);
      Access access = writes ? Access::kWrite : Access::kRead;
      if (Checks(kCheckBounds)) CheckBounds(rows[i], kMatrixRowBytes, access, thread->pc);
      if (Checks(kCheckShadow)) {
        shadow.Record({row, kMatrixRowBytes, thread->linear, access, thread->pc, IsShared(row)});
      }
    }
    if (Checks(kCheckBanks)) traffic.RecordRows(CodeOffset(caller->pc), rows);
  }
}

void OnAtomic(const void* address, size_t bytes, bool writes, Order atomic_order,
              const void* pc) {
  OnAccess(address, bytes, Access::kAtomic, pc);
  if (Checks(kCheckShadow)) order.Atomic(block.current->linear, address, writes, atomic_order);
  YieldSometimes();
}

extern "C" {

void tl_emu_atomic(const void* address, size_t bytes, bool writes, Order atomic_order) {
  OnAtomic(address, bytes, writes, atomic_order, __builtin_return_address(0));
}

void tl_emu_fence() {
  if (Checks(kCheckShadow)) order.Fence(block.current->linear);
}

/*! \brief Copy the counters of the last launch and return their size in bytes. */
__attribute__((visibility("default"))) size_t tl_emulator_counters(char* buffer, size_t capacity) {
  std::string text = traffic.Text();
  if (buffer != nullptr) std::memcpy(buffer, text.data(), std::min(text.size(), capacity));
  return text.size();
}

}  // extern "C"

}  // namespace tl_emu
