// Atomic updates of one element of any type. They return the element before the update.
#pragma once
#include <tl/atomic_ptx.h>
#include <tl/minmax.h>

namespace tl {

template <memory_order order>
struct ordered {
  TL_DEVICE ordered() {
    if (order == release || order == acq_rel || order == seq_cst) ptx::fence();
  }
  TL_DEVICE ~ordered() {
    if (order != relaxed && order != release) ptx::fence();
  }
};

template <class T>
struct is_small_float {
  static constexpr bool value = !is_same<T, float>::value && !is_same<T, double>::value &&
                                !ptx::is_integer_word<T>::value && sizeof(T) < 4;
};

// The parameter of the value is not deduced: a constant takes the type of its target.
template <class T>
struct identity {
  using type = T;
};
template <class T>
using same_type = typename identity<T>::type;

template <class T>
TL_DEVICE T sum_of(T a, T b) {
  if constexpr (is_same<T, half>::value || is_same<T, bfloat16>::value) return a + b;
  else if constexpr (is_small_float<T>::value) return T(float(a) + float(b));
  else if constexpr (is_same<T, bool>::value) return a || b;
  else return T(a + b);
}
template <class T>
TL_DEVICE T smaller_of(T a, T b) {
  if constexpr (is_same<T, half>::value || is_same<T, bfloat16>::value) return min(a, b);
  else if constexpr (is_small_float<T>::value) return T(min(float(a), float(b)));
  else return min(a, b);
}
template <class T>
TL_DEVICE T larger_of(T a, T b) {
  if constexpr (is_same<T, half>::value || is_same<T, bfloat16>::value) return max(a, b);
  else if constexpr (is_small_float<T>::value) return T(max(float(a), float(b)));
  else return max(a, b);
}

template <memory_order order = relaxed, class T>
TL_DEVICE T atomic_add(T* p, same_type<T> x) {
  ordered<order> fences;
  if constexpr (ptx::has_add<T>::value) return ptx::add(p, x);
  else return ptx::update(p, [=](T old) { return sum_of(old, x); }, order);
}
template <memory_order order = relaxed, class T>
TL_DEVICE T atomic_min(T* p, same_type<T> x) {
  ordered<order> fences;
  if constexpr (ptx::is_integer_word<T>::value) return ptx::min(p, x);
  else return ptx::update(p, [=](T old) { return smaller_of(old, x); }, order);
}
template <memory_order order = relaxed, class T>
TL_DEVICE T atomic_max(T* p, same_type<T> x) {
  ordered<order> fences;
  if constexpr (ptx::is_integer_word<T>::value) return ptx::max(p, x);
  else return ptx::update(p, [=](T old) { return larger_of(old, x); }, order);
}
#define TL_ATOMIC_BITS(NAME, OPERATOR)                                               \
  template <memory_order order = relaxed, class T>                                   \
  TL_DEVICE T atomic_##NAME(T* p, same_type<T> x) {                                  \
    ordered<order> fences;                                                           \
    if constexpr (ptx::is_integer_word<T>::value) return ptx::bit_##NAME(p, x);      \
    else return ptx::update(p, [=](T old) { return T(old OPERATOR x); }, order);     \
  }
TL_ATOMIC_BITS(and, &)
TL_ATOMIC_BITS(or, |)
TL_ATOMIC_BITS(xor, ^)
#undef TL_ATOMIC_BITS
template <memory_order order = relaxed, class T>
TL_DEVICE T atomic_load(const T* p) {
  ordered<order> fences;
  return ptx::load(p, order);
}
template <memory_order order = relaxed, class T>
TL_DEVICE void atomic_store(T* p, same_type<T> x) {
  ordered<order> fences;
  ptx::store(p, x, order);
}

// Adds n elements in global memory, each atomically; dst is aligned to them.
template <int n, class T>
TL_DEVICE void atomic_add_vec(T* dst, const T* src) {
  if constexpr (ptx::has_add_vec<T, n>::value) {
    ptx::add_vec<n>(dst, src);
  } else {
#pragma unroll
    for (int i = 0; i < n; ++i) atomic_add(dst + i, src[i]);
  }
}

}  // namespace tl
