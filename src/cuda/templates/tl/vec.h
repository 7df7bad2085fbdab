// Short vectors: lanes next to each other, aligned to their size, arithmetic lane by lane.
#pragma once
#include <tl/common.h>

namespace tl {

// The largest power of two in the size, 16 at most, is the alignment.
template <class T, int N>
struct alignas(sizeof(T) * N >= 16 ? 16 : sizeof(T) * N & -(sizeof(T) * N)) vec {
  T lane[N];
  TL_DEVICE T& operator[](int i) { return lane[i]; }
  TL_DEVICE const T& operator[](int i) const { return lane[i]; }
};

template <int N, class T>
TL_DEVICE vec<T, N> broadcast(T x) {
  vec<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.lane[i] = x;
  return y;
}

template <class T, class... Rest>
TL_DEVICE vec<T, 1 + sizeof...(Rest)> make_vec(T first, Rest... rest) {
  return {{first, rest...}};
}

// base, base + stride, ...
template <int N, class T>
TL_DEVICE vec<T, N> ramp(T base, T stride) {
  vec<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.lane[i] = base + T(i) * stride;
  return y;
}

// Lanes first, first + 1, ... of a vector.
template <int N, class T, int M>
TL_DEVICE vec<T, N> lanes_from(const vec<T, M>& x, int first) {
  vec<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.lane[i] = x.lane[first + i];
  return y;
}

template <class T, int N, int M>
TL_DEVICE vec<T, N + M> concat(const vec<T, N>& a, const vec<T, M>& b) {
  vec<T, N + M> y;
#pragma unroll
  for (int i = 0; i < N + M; ++i) y.lane[i] = i < N ? a.lane[i] : b.lane[i - N];
  return y;
}

#define TL_LANES(R, OP)                                                     \
  template <class T, int N>                                                 \
  TL_DEVICE vec<R, N> operator OP(const vec<T, N>& a, const vec<T, N>& b) { \
    vec<R, N> y;                                                            \
    _Pragma("unroll") for (int i = 0; i < N; ++i) y.lane[i] = a.lane[i] OP b.lane[i]; \
    return y;                                                               \
  }
TL_LANES(T, +)
TL_LANES(T, -)
TL_LANES(T, *)
TL_LANES(T, /)
TL_LANES(T, %)
TL_LANES(T, &)
TL_LANES(T, |)
TL_LANES(T, ^)
TL_LANES(T, <<)
TL_LANES(T, >>)
TL_LANES(bool, ==)
TL_LANES(bool, !=)
TL_LANES(bool, <)
TL_LANES(bool, <=)
TL_LANES(bool, >)
TL_LANES(bool, >=)
TL_LANES(bool, &&)
TL_LANES(bool, ||)
#undef TL_LANES

template <int N, class T>
TL_DEVICE vec<T, N> select(const vec<bool, N>& chosen, const vec<T, N>& a, const vec<T, N>& b) {
  vec<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.lane[i] = chosen.lane[i] ? a.lane[i] : b.lane[i];
  return y;
}

// A function of every lane: map([](float x) { return tl::exp(x); }, v).
template <class F, class T, int N>
TL_DEVICE auto map(F function, const vec<T, N>& a) -> vec<decltype(function(a.lane[0])), N> {
  vec<decltype(function(a.lane[0])), N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.lane[i] = function(a.lane[i]);
  return y;
}
template <class F, class T, class U, int N>
TL_DEVICE auto map(F function, const vec<T, N>& a, const vec<U, N>& b)
    -> vec<decltype(function(a.lane[0], b.lane[0])), N> {
  vec<decltype(function(a.lane[0], b.lane[0])), N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.lane[i] = function(a.lane[i], b.lane[i]);
  return y;
}
template <class F, class T, class U, class V, int N>
TL_DEVICE auto map(F function, const vec<T, N>& a, const vec<U, N>& b, const vec<V, N>& c)
    -> vec<decltype(function(a.lane[0], b.lane[0], c.lane[0])), N> {
  vec<decltype(function(a.lane[0], b.lane[0], c.lane[0])), N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.lane[i] = function(a.lane[i], b.lane[i], c.lane[i]);
  return y;
}

}  // namespace tl
