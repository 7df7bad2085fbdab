/*!
 * \file atomics.h
 * \brief CUDA's atomic functions on the host's atomics.
 */
#pragma once

#include "builtins.h"

namespace tl_emu {

template <size_t kBytes>
struct Word;
template <>
struct Word<1> { using type = uint8_t; };
template <>
struct Word<2> { using type = uint16_t; };
template <>
struct Word<4> { using type = uint32_t; };
template <>
struct Word<8> { using type = uint64_t; };

/*! \brief Replace `*address` by `combine(*address)` atomically and return the old value. */
template <class T, class Combine>
__attribute__((no_sanitize("thread"))) inline T AtomicUpdate(T* address, Combine combine,
                                                             Order order = Order::kRelaxed) {
  using W = typename Word<sizeof(T)>::type;
  tl_emu_atomic(address, sizeof(T), true, order);
  W* word = reinterpret_cast<W*>(address);
  W old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(word, &old, BitCast<W>(combine(BitCast<T>(old))), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return BitCast<T>(old);
}

template <class T>
__attribute__((no_sanitize("thread"))) inline T AtomicLoad(const T* address, Order order) {
  using W = typename Word<sizeof(T)>::type;
  tl_emu_atomic(address, sizeof(T), false, order);
  return BitCast<T>(__atomic_load_n(reinterpret_cast<const W*>(address), __ATOMIC_SEQ_CST));
}

// The value of an atomic is converted to the type of its target, as an overload set would do.
template <class T>
struct Same { using type = T; };
template <class T>
using SameT = typename Same<T>::type;

}  // namespace tl_emu

#define TL_EMU_ATOMIC(name, expression)                                               \
  template <class T>                                                                  \
  inline T name(T* address, tl_emu::SameT<T> value) {                                 \
    return tl_emu::AtomicUpdate(address, [=](T old) { return static_cast<T>(expression); }); \
  }
TL_EMU_ATOMIC(atomicAdd, old + value)
TL_EMU_ATOMIC(atomicSub, old - value)
TL_EMU_ATOMIC(atomicExch, value)
TL_EMU_ATOMIC(atomicMin, value < old ? value : old)
TL_EMU_ATOMIC(atomicMax, old < value ? value : old)
TL_EMU_ATOMIC(atomicAnd, old & value)
TL_EMU_ATOMIC(atomicOr, old | value)
TL_EMU_ATOMIC(atomicXor, old ^ value)
TL_EMU_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
TL_EMU_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef TL_EMU_ATOMIC

template <class T>
inline T atomicCAS(T* address, tl_emu::SameT<T> compare, tl_emu::SameT<T> value) {
  return tl_emu::AtomicUpdate(address, [=](T old) {
    return std::memcmp(&old, &compare, sizeof(T)) == 0 ? value : old;
  });
}
