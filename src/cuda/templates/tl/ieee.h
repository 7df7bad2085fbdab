// Arithmetic that rounds once, in a chosen direction, and is never contracted: ieee_add_rz and so on.
#pragma once
#include <tl/convert.h>
#include <tl/ieee_ptx.h>
#include <tl/types.h>

namespace tl {

// The neighbour of a code of 16 bits in the direction of infinity with that sign.
template <class T>
TL_DEVICE T step(T x, bool up) {
  const bool negative = x.bits >> 15;
  if ((x.bits & 0x7fff) == 0) return T::from_bits(up ? 0x0001 : 0x8001);
  return T::from_bits(uint16_t(negative != up ? x.bits + 1 : x.bits - 1));
}

template <rounding mode, class T>
TL_DEVICE T narrow(double x) {
  const T near = cast<T>(x);
  const double back = double(float(near));
  if (mode == rn || back == x || x != x) return near;
  const bool above = back > x;
  const bool wanted_above = mode == ru || (mode == rz && x < 0.0);
  return above == wanted_above ? near : step(near, wanted_above);
}

// A result of float64 arithmetic on 16-bit floats: rounding it in the same direction again rounds
// the exact result; to nearest, float32 has more than twice the digits.
template <rounding mode, class T, class F, class... Args>
TL_DEVICE T ieee(F function, Args... args) {
  if constexpr (is_wide_float<T>::value) return function(args...);
  else if constexpr (mode == rn) return T(function(float(args)...));
  else return narrow<mode, T>(function(double(float(args))...));
}

// The instruction as an object. (NVRTC before 13.5 takes a generic lambda for a host function.)
#define TL_INSTRUCTION(NAME, MODE)                                            \
  struct NAME##_##MODE {                                                      \
    template <class... Args>                                                  \
    TL_DEVICE auto operator()(Args... args) const {                           \
      return ptx::NAME<MODE>(args...);                                        \
    }                                                                         \
  };
#define TL_UNARY(NAME, MODE)                                                  \
  TL_INSTRUCTION(NAME, MODE)                                                  \
  template <class T>                                                          \
  TL_DEVICE T ieee_##NAME##_##MODE(T x) {                                     \
    return ieee<MODE, T>(NAME##_##MODE(), x);                                 \
  }
#define TL_BINARY(NAME, MODE)                                                 \
  TL_INSTRUCTION(NAME, MODE)                                                  \
  template <class T>                                                          \
  TL_DEVICE T ieee_##NAME##_##MODE(T x, T y) {                                \
    return ieee<MODE, T>(NAME##_##MODE(), x, y);                              \
  }
#define TL_MODES(FORM, NAME) FORM(NAME, rn) FORM(NAME, rz) FORM(NAME, ru) FORM(NAME, rd)
TL_MODES(TL_BINARY, add)
TL_MODES(TL_BINARY, sub)
TL_MODES(TL_BINARY, mul)
TL_MODES(TL_BINARY, fdiv)
TL_MODES(TL_UNARY, frcp)
TL_MODES(TL_UNARY, fsqrt)
#undef TL_UNARY
#undef TL_BINARY

// The product of short floats is exact in float64; the sum keeps a sticky bit.
TL_DEVICE float fma_odd(float x, float y, float z) {
  return ptx::sum_to_odd(double(x) * double(y), double(z));
}
template <class T>
TL_DEVICE T ieee_fmaf_rn(T x, T y, T z) {
  if constexpr (is_wide_float<T>::value) return ptx::fmaf<rn>(x, y, z);
  else return T(fma_odd(float(x), float(y), float(z)));
}
#define TL_FMA(NAME, MODE)                                                    \
  TL_INSTRUCTION(NAME, MODE)                                                  \
  template <class T>                                                          \
  TL_DEVICE T ieee_##NAME##_##MODE(T x, T y, T z) {                           \
    return ieee<MODE, T>(NAME##_##MODE(), x, y, z);                           \
  }
TL_FMA(fmaf, rz)
TL_FMA(fmaf, ru)
TL_FMA(fmaf, rd)
#undef TL_FMA
#undef TL_INSTRUCTION
#undef TL_MODES

// 1 / sqrt(x); float64 decides every case of float32.
template <class T>
TL_DEVICE T ieee_frsqrt(T x) {
  if constexpr (is_same<T, double>::value) return 1.0 / ::sqrt(x);
  else return cast<T>(1.0 / ::sqrt(double(float(x))));
}

}  // namespace tl
