/*!
 * \file access.cc
 * \brief The functions that code compiled with -fsanitize=thread calls at its memory accesses.
 *
 * They stand in for the compiler's own runtime library, which is not linked.
 */
#include <cstddef>
#include <cstdint>

#include "../tl/emulator/runtime.h"
#include "memory.h"

namespace {

using tl_emu::Access;

tl_emu::Order OrderOf(int value) {
  // consume counts as acquire
  return static_cast<tl_emu::Order>(value == __ATOMIC_CONSUME ? __ATOMIC_ACQUIRE : value);
}

}  // namespace

#define TL_PC __builtin_return_address(0)

#define TL_ACCESS(size)                                                                     \
  void __tsan_read##size(void* p) { tl_emu::OnAccess(p, size, Access::kRead, TL_PC); }      \
  void __tsan_write##size(void* p) { tl_emu::OnAccess(p, size, Access::kWrite, TL_PC); }    \
  void __tsan_unaligned_read##size(void* p) {                                               \
    tl_emu::OnAccess(p, size, Access::kRead, TL_PC);                                        \
  }                                                                                         \
  void __tsan_unaligned_write##size(void* p) {                                              \
    tl_emu::OnAccess(p, size, Access::kWrite, TL_PC);                                       \
  }

#define TL_ATOMIC_UPDATE(bits, type, name)                                                  \
  type __tsan_atomic##bits##_fetch_##name(volatile type* p, type v, int order) {            \
    tl_emu::OnAtomic(const_cast<type*>(p), sizeof(type), true, OrderOf(order), TL_PC);      \
    return __atomic_fetch_##name(p, v, __ATOMIC_SEQ_CST);                                   \
  }

#define TL_ATOMIC(bits, type)                                                               \
  type __tsan_atomic##bits##_load(const volatile type* p, int order) {                      \
    tl_emu::OnAtomic(const_cast<type*>(p), sizeof(type), false, OrderOf(order), TL_PC);     \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                            \
  }                                                                                         \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int order) {                   \
    tl_emu::OnAtomic(const_cast<type*>(p), sizeof(type), true, OrderOf(order), TL_PC);      \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                               \
  }                                                                                         \
  type __tsan_atomic##bits##_exchange(volatile type* p, type v, int order) {                \
    tl_emu::OnAtomic(const_cast<type*>(p), sizeof(type), true, OrderOf(order), TL_PC);      \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected,       \
                                                    type v, int order, int) {               \
    tl_emu::OnAtomic(const_cast<type*>(p), sizeof(type), true, OrderOf(order), TL_PC);      \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST,             \
                                       __ATOMIC_SEQ_CST);                                   \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type v, \
                                                  int order, int failure) {                 \
    return __tsan_atomic##bits##_compare_exchange_strong(p, expected, v, order, failure);   \
  }                                                                                         \
  TL_ATOMIC_UPDATE(bits, type, add)                                                         \
  TL_ATOMIC_UPDATE(bits, type, sub)                                                         \
  TL_ATOMIC_UPDATE(bits, type, and)                                                         \
  TL_ATOMIC_UPDATE(bits, type, or)                                                          \
  TL_ATOMIC_UPDATE(bits, type, xor)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

TL_ACCESS(1)
TL_ACCESS(2)
TL_ACCESS(4)
TL_ACCESS(8)
TL_ACCESS(16)

void __tsan_read_range(void* p, size_t size) { tl_emu::OnAccess(p, size, Access::kRead, TL_PC); }
void __tsan_write_range(void* p, size_t size) { tl_emu::OnAccess(p, size, Access::kWrite, TL_PC); }

TL_ATOMIC(8, uint8_t)
TL_ATOMIC(16, uint16_t)
TL_ATOMIC(32, uint32_t)
TL_ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int) { tl_emu::tl_emu_fence(); }
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"

#undef TL_PC
#undef TL_ACCESS
#undef TL_ATOMIC
#undef TL_ATOMIC_UPDATE
