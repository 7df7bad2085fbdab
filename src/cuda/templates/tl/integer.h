// Integers as the language defines them: arithmetic modulo 2^width, floor division, division and
// shifts by any amount, bit counts.
#pragma once
#include <tl/integer_ptx.h>

namespace tl {

// By size, since `long` and `long long` are both 64 bits wide.
template <int bytes>
struct unsigned_bytes;
template <> struct unsigned_bytes<1> { using type = uint8_t; };
template <> struct unsigned_bytes<2> { using type = uint16_t; };
template <> struct unsigned_bytes<4> { using type = unsigned; };
template <> struct unsigned_bytes<8> { using type = uint64_t; };
template <class T>
using unsigned_of = typename unsigned_bytes<int(sizeof(T))>::type;

// 1u * keeps the product of two uint16_t out of int.
template <class T>
TL_DEVICE T wrap_add(T a, T b) {
  return T(1u * unsigned_of<T>(a) + unsigned_of<T>(b));
}
template <class T>
TL_DEVICE T wrap_sub(T a, T b) {
  return T(1u * unsigned_of<T>(a) - unsigned_of<T>(b));
}
template <class T>
TL_DEVICE T wrap_mul(T a, T b) {
  return T(1u * unsigned_of<T>(a) * unsigned_of<T>(b));
}

// Quotient and remainder of a division by 0 are 0; the lowest number by -1 wraps.
template <class T>
TL_DEVICE T trunc_div(T a, T b) {
  if (b == 0) return 0;
  if (T(-1) < T(0) && b == T(-1)) return wrap_sub(T(0), a);
  return a / b;
}
template <class T>
TL_DEVICE T trunc_mod(T a, T b) {
  if (b == 0 || (T(-1) < T(0) && b == T(-1))) return 0;
  return a % b;
}
template <class T>
TL_DEVICE T floor_div(T a, T b) {
  const T q = trunc_div(a, b), r = trunc_mod(a, b);
  return b != 0 && r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
}
template <class T>
TL_DEVICE T floor_mod(T a, T b) {
  const T r = trunc_mod(a, b);
  return b != 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// A shift by the width or more, or by a negative amount, leaves nothing but the sign.
template <class T>
TL_DEVICE T shift_left(T a, T n) {
  const bool out = unsigned_of<T>(n) >= unsigned_of<T>(8 * sizeof(T));
  return out ? T(0) : T(unsigned_of<T>(a) << n);
}
template <class T>
TL_DEVICE T shift_right(T a, T n) {
  const bool out = unsigned_of<T>(n) >= unsigned_of<T>(8 * sizeof(T));
  return T(a >> (out ? T(8 * sizeof(T) - 1) : n)) & (out && T(-1) > T(0) ? T(0) : T(-1));
}

// Bits of a number of any width; counts are of its own width.
template <class T>
TL_DEVICE int popcount(T x) {
  if constexpr (sizeof(T) == 8) return ptx::popcount_wide(uint64_t(x));
  else return ptx::popcount_word(unsigned(unsigned_of<T>(x)));
}
template <class T>
TL_DEVICE int clz(T x) {
  if constexpr (sizeof(T) == 8) return ptx::clz_wide(uint64_t(x));
  else return ptx::clz_word(unsigned(unsigned_of<T>(x))) - int(32 - 8 * sizeof(T));
}
// Position of the lowest set bit counted from 1, 0 if there is none.
template <class T>
TL_DEVICE int ffs(T x) {
  const unsigned_of<T> bits = unsigned_of<T>(x);
  return bits == 0 ? 0 : int(8 * sizeof(T)) - clz(unsigned_of<T>(bits & (0u - bits)));
}
// Position of the n-th set bit of a mask, from `base` upward (downward for n < 0), -1 without one.
TL_DEVICE int find_nth_set(unsigned mask, int base, int n) {
  if (n == 0) return (mask >> base) & 1 ? base : -1;
  const int step = n > 0 ? 1 : -1;
  int left = n * step;
  for (int i = base; i >= 0 && i < 32; i += step) {
    left -= (mask >> i) & 1;
    if (left == 0) return i;
  }
  return -1;
}

// round(x * y * 2^-shift) of fixed-point numbers, halves upward.
TL_DEVICE int q_multiply_shift(int x, int y, int q, int s) {
  const int left = s > 0 ? s : 0, total = q - (s < 0 ? s : 0);
  return int(((int64_t(x) << left) * y + (int64_t(1) << (total - 1))) >> total);
}
TL_DEVICE int q_multiply_shift_per_axis(int x, int y, int left, int right, int q, int shift_left,
                                        int shift_right) {
  const int64_t wide = shift_left ? int64_t(x) << left : int64_t(x);
  const int total = q + (shift_right ? right : 0);
  return int((wide * y + (int64_t(1) << (total - 1))) >> total);
}

}  // namespace tl
