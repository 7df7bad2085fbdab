// Atomic updates: what the instructions of the device header do, seen by the race detector.
#pragma once
#include <tl/emulator/atomics.h>
#include <tl/types.h>

namespace tl {

enum memory_order { relaxed, consume, acquire, release, acq_rel, seq_cst };

namespace ptx {

// Updates carry their order themselves.
TL_DEVICE void fence() {}

template <class T>
struct is_integer_word {
  static constexpr bool value = is_same<T, int>::value || is_same<T, unsigned>::value ||
                                is_same<T, int64_t>::value || is_same<T, uint64_t>::value;
};
template <class T>
struct has_add {
  static constexpr bool value = false;
};
template <class T, int n>
struct has_add_vec {
  static constexpr bool value = false;
};

inline tl_emu::Order order_of(memory_order order) {
  return order == consume ? tl_emu::Order::kAcquire : static_cast<tl_emu::Order>(order);
}

// Replaces *p by combine(*p).
template <class T, class F>
TL_DEVICE T update(T* p, F combine, memory_order order) {
  return tl_emu::AtomicUpdate(p, combine, order_of(order));
}
template <class T>
TL_DEVICE T load(const T* p, memory_order order) {
  return tl_emu::AtomicLoad(p, order_of(order));
}
template <class T>
TL_DEVICE void store(T* p, T x, memory_order order) {
  tl_emu::AtomicUpdate(p, [=](T) { return x; }, order_of(order));
}

template <class T>
TL_DEVICE T add(T* p, T x) {
  return update(p, [=](T old) { return T(old + x); }, relaxed);
}
template <class T>
TL_DEVICE T min(T* p, T x) {
  return update(p, [=](T old) { return x < old ? x : old; }, relaxed);
}
template <class T>
TL_DEVICE T max(T* p, T x) {
  return update(p, [=](T old) { return old < x ? x : old; }, relaxed);
}
template <class T>
TL_DEVICE T bit_or(T* p, T x) {
  return update(p, [=](T old) { return T(old | x); }, relaxed);
}
template <class T>
TL_DEVICE T bit_and(T* p, T x) {
  return update(p, [=](T old) { return T(old & x); }, relaxed);
}
template <class T>
TL_DEVICE T bit_xor(T* p, T x) {
  return update(p, [=](T old) { return T(old ^ x); }, relaxed);
}
template <int n, class T>
TL_DEVICE void add_vec(T* dst, const T* src) {
  for (int i = 0; i < n; ++i) add(dst + i, src[i]);
}

}  // namespace ptx
}  // namespace tl
