// half and bfloat16: plain data with arithmetic. Conversions are explicit.
#pragma once
#include <tl/scalar_ptx.h>

namespace tl {

struct half {
  uint16_t bits;
  half() = default;
  TL_DEVICE explicit half(float x) : bits(ptx::f32_to_f16(x)) {}
  TL_DEVICE explicit operator float() const { return ptx::f16_to_f32(bits); }
  TL_DEVICE static half from_bits(uint16_t bits) {
    half x;
    x.bits = bits;
    return x;
  }
};

struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  TL_DEVICE explicit bfloat16(float x) : bits(ptx::f32_to_bf16(x)) {}
  TL_DEVICE explicit operator float() const { return ptx::bf16_to_f32(bits); }
  TL_DEVICE static bfloat16 from_bits(uint16_t bits) {
    bfloat16 x;
    x.bits = bits;
    return x;
  }
};

#define TL_ARITHMETIC(T, P)                                                                   \
  TL_DEVICE T operator+(T a, T b) { return T::from_bits(ptx::P##_add(a.bits, b.bits)); }      \
  TL_DEVICE T operator-(T a, T b) { return T::from_bits(ptx::P##_sub(a.bits, b.bits)); }      \
  TL_DEVICE T operator*(T a, T b) { return T::from_bits(ptx::P##_mul(a.bits, b.bits)); }      \
  TL_DEVICE T operator/(T a, T b) { return T(float(a) / float(b)); }                          \
  TL_DEVICE T operator-(T a) { return T::from_bits(a.bits ^ 0x8000); }                        \
  TL_DEVICE T& operator+=(T& a, T b) { return a = a + b; }                                    \
  TL_DEVICE T& operator-=(T& a, T b) { return a = a - b; }                                    \
  TL_DEVICE T& operator*=(T& a, T b) { return a = a * b; }                                    \
  TL_DEVICE T& operator/=(T& a, T b) { return a = a / b; }                                    \
  TL_DEVICE bool operator==(T a, T b) { return float(a) == float(b); }                        \
  TL_DEVICE bool operator!=(T a, T b) { return float(a) != float(b); }                        \
  TL_DEVICE bool operator<(T a, T b) { return float(a) < float(b); }                          \
  TL_DEVICE bool operator<=(T a, T b) { return float(a) <= float(b); }                        \
  TL_DEVICE bool operator>(T a, T b) { return float(a) > float(b); }                          \
  TL_DEVICE bool operator>=(T a, T b) { return float(a) >= float(b); }

TL_ARITHMETIC(half, f16)
TL_ARITHMETIC(bfloat16, bf16)
#undef TL_ARITHMETIC

}  // namespace tl
