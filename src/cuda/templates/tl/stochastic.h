// Stochastic rounding of float32: random bits are added below the kept mantissa, then it is cut.
#pragma once
#include <tl/minifloat.h>
#include <tl/types.h>

namespace tl {

template <class T>
TL_DEVICE T cast_stochastic(float x, unsigned random) {
  constexpr int mantissa = is_same<T, half>::value            ? 10
                           : is_same<T, bfloat16>::value      ? 7
                           : is_same<T, float8_e4m3fn>::value ? 3
                                                              : 2;
  constexpr unsigned dropped = (1u << (23 - mantissa)) - 1;
  const unsigned bits = bit_cast<unsigned>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u && (sizeof(T) == 2 || x != x)) return T(x);
  float cut = bit_cast<float>((bits + (random & dropped)) & ~dropped);
  if constexpr (sizeof(T) == 1) {  // the largest finite number stands for what is beyond
    const float largest = is_same<T, float8_e4m3fn>::value ? 448.0f : 57344.0f;
    if (::fabsf(x) > largest || ::fabsf(cut) > largest) cut = ::copysignf(largest, x);
  }
  return T(cut);
}

}  // namespace tl
