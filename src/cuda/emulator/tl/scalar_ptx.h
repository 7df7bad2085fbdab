// float16 and bfloat16 by their codes: what the PTX of the device header computes.
#pragma once
#include <math.h>
#include <cmath>

#include <tl/float_format.h>

namespace tl {
namespace ptx {

// The number if one operand is NaN; the functions of C return NaN for a signaling one.
template <class T>
TL_DEVICE T number_min(T a, T b) {
  return a != a ? b : b < a ? b : a;
}
template <class T>
TL_DEVICE T number_max(T a, T b) {
  return a != a ? b : a < b ? b : a;
}

TL_DEVICE float f16_to_f32(uint16_t x) { return decode<HalfFormat>(x); }
TL_DEVICE uint16_t f32_to_f16(float x) { return uint16_t(encode<HalfFormat>(x)); }
TL_DEVICE float bf16_to_f32(uint16_t x) { return bit_cast<float>(uint32_t(x) << 16); }
TL_DEVICE uint16_t f32_to_bf16(float x) { return uint16_t(encode<Bfloat16Format>(x)); }

// float32 has more than twice the digits, so rounding its result rounds the exact one.
#define TL_THROUGH_F32(P, NAME, RESULT)                          \
  TL_DEVICE uint16_t P##_##NAME(uint16_t x, uint16_t y) {        \
    const float a = P##_to_f32(x), b = P##_to_f32(y);            \
    return f32_to_##P(RESULT);                                   \
  }
#define TL_OPERATIONS(P)                        \
  TL_THROUGH_F32(P, add, a + b)                 \
  TL_THROUGH_F32(P, sub, a - b)                 \
  TL_THROUGH_F32(P, mul, a * b)                 \
  TL_THROUGH_F32(P, min, number_min(a, b))       \
  TL_THROUGH_F32(P, max, number_max(a, b))

TL_OPERATIONS(f16)
TL_OPERATIONS(bf16)
#undef TL_OPERATIONS
#undef TL_THROUGH_F32

// A float64 sum rounded to odd keeps what the last rounding needs.
TL_DEVICE float sum_to_odd(double a, double b) {
  const double total = a + b, back = total - a;
  const double error = (a - (total - back)) + (b - back);
  float near = float(total);
  const bool exact = error == 0.0 && double(near) == total;
  if (exact || !std::isfinite(near)) return near;
  uint32_t bits = bit_cast<uint32_t>(near);
  // Where the float lies beyond the exact sum in magnitude, one step back; then the last bit.
  const double rest = double(near) == total ? error : total - double(near);
  if (rest != 0.0 && (rest < 0.0) != std::signbit(near)) --bits;
  return bit_cast<float>(bits | 1u);
}

TL_DEVICE uint16_t f16_fma(uint16_t a, uint16_t b, uint16_t c) {
  return f32_to_f16(sum_to_odd(double(f16_to_f32(a)) * f16_to_f32(b), f16_to_f32(c)));
}
TL_DEVICE uint16_t bf16_fma(uint16_t a, uint16_t b, uint16_t c) {
  return f32_to_bf16(sum_to_odd(double(bf16_to_f32(a)) * bf16_to_f32(b), bf16_to_f32(c)));
}

}  // namespace ptx
}  // namespace tl
