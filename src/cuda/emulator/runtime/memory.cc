/*!
 * \file memory.cc
 */
#include "memory.h"

#include <cstring>

#include "report.h"

extern "C" {
extern char __start_tl_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_tl_shared[] __attribute__((weak, visibility("hidden")));
}

namespace tl_emu {

MemoryScope::MemoryScope(const Launch& launch, const char* stacks, size_t stack_bytes)
    : slots_(launch.slots) {
  (void)stacks;
  (void)stack_bytes;
}

MemoryScope::~MemoryScope() = default;

void BeginBlock() {
  std::memset(tl_emu_arena, kUndefinedByte, static_cast<size_t>(block.launch->dynamic_shared));
  if (__start_tl_shared != nullptr) {
    std::memset(__start_tl_shared, kUndefinedByte,
                static_cast<size_t>(__stop_tl_shared - __start_tl_shared));
  }
}

void EndBlock() {}

bool IsShared(const void* address) {
  auto* at = static_cast<const char*>(address);
  auto* arena = reinterpret_cast<const char*>(tl_emu_arena);
  return (at >= arena && at < arena + kMaxSharedBytes) ||
         (__start_tl_shared != nullptr && at >= __start_tl_shared && at < __stop_tl_shared);
}

void OnBarrier(const std::vector<Thread*>&, const std::vector<Thread*>&) {}
void OnWarpSync(const Group&) {}
bool OnAsyncStart(const AsyncCopy&) { return true; }
void OnAsyncDone(const AsyncCopy&, const void*) {}
void OnMatrixAccess(const Group&, unsigned, bool) {}

extern "C" {
void tl_emu_atomic(const void*, size_t, bool, Order) {}
void tl_emu_fence() {}
}

}  // namespace tl_emu

/*! \brief Copy the counters of the last launch and return their size in bytes. */
extern "C" __attribute__((visibility("default"))) size_t tl_emulator_counters(char*, size_t) {
  return 0;
}
