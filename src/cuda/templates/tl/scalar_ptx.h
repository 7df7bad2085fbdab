// float16 and bfloat16 by their codes, in PTX. The emulator has a file of this name in plain C++.
#pragma once
#include <tl/float_format.h>

namespace tl {
namespace ptx {

// The number if one operand is NaN.
TL_DEVICE float number_min(float a, float b) { return ::fminf(a, b); }
TL_DEVICE float number_max(float a, float b) { return ::fmaxf(a, b); }
TL_DEVICE double number_min(double a, double b) { return ::fmin(a, b); }
TL_DEVICE double number_max(double a, double b) { return ::fmax(a, b); }

TL_DEVICE float f16_to_f32(uint16_t x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}

TL_DEVICE uint16_t f32_to_f16(float x) {
  if (TL_IS_CONSTANT(x)) return uint16_t(encode<HalfFormat>(x));
  uint16_t y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}

TL_DEVICE uint16_t f32_to_bf16(float x) {
#if __CUDA_ARCH__ >= 800
  if (TL_IS_CONSTANT(x)) return uint16_t(encode<Bfloat16Format>(x));
  uint16_t y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#else
  return uint16_t(encode<Bfloat16Format>(x));
#endif
}

TL_DEVICE float bf16_to_f32(uint16_t x) { return bit_cast<float>(uint32_t(x) << 16); }

#define TL_BINARY(NAME, OP)                                         \
  TL_DEVICE uint16_t NAME(uint16_t a, uint16_t b) {                 \
    uint16_t c;                                                     \
    asm(OP " %0, %1, %2;" : "=h"(c) : "h"(a), "h"(b));              \
    return c;                                                       \
  }
#define TL_TERNARY(NAME, OP)                                        \
  TL_DEVICE uint16_t NAME(uint16_t a, uint16_t b, uint16_t c) {     \
    uint16_t d;                                                     \
    asm(OP " %0, %1, %2, %3;" : "=h"(d) : "h"(a), "h"(b), "h"(c));  \
    return d;                                                       \
  }
#define TL_THROUGH_F32(NAME, FROM, TO, RESULT)                      \
  TL_DEVICE uint16_t NAME(uint16_t x, uint16_t y) {                 \
    const float a = FROM(x), b = FROM(y);                           \
    return TO(RESULT);                                              \
  }

// Without a rounding modifier ptxas may contract a product and a sum.
TL_BINARY(f16_add, "add.f16")
TL_BINARY(f16_sub, "sub.f16")
TL_BINARY(f16_mul, "mul.f16")
TL_TERNARY(f16_fma, "fma.rn.f16")

#if __CUDA_ARCH__ >= 800
TL_BINARY(f16_min, "min.f16")
TL_BINARY(f16_max, "max.f16")
TL_BINARY(bf16_min, "min.bf16")
TL_BINARY(bf16_max, "max.bf16")
TL_TERNARY(bf16_fma, "fma.rn.bf16")
#else
TL_THROUGH_F32(f16_min, f16_to_f32, f32_to_f16, number_min(a, b))
TL_THROUGH_F32(f16_max, f16_to_f32, f32_to_f16, number_max(a, b))
TL_THROUGH_F32(bf16_min, bf16_to_f32, f32_to_bf16, number_min(a, b))
TL_THROUGH_F32(bf16_max, bf16_to_f32, f32_to_bf16, number_max(a, b))
#endif

#if __CUDA_ARCH__ >= 900
TL_BINARY(bf16_add, "add.bf16")
TL_BINARY(bf16_sub, "sub.bf16")
TL_BINARY(bf16_mul, "mul.bf16")
#else
// float32 has more than twice the digits, so rounding its result rounds the exact one.
TL_THROUGH_F32(bf16_add, bf16_to_f32, f32_to_bf16, a + b)
TL_THROUGH_F32(bf16_sub, bf16_to_f32, f32_to_bf16, a - b)
TL_THROUGH_F32(bf16_mul, bf16_to_f32, f32_to_bf16, a * b)
#endif

#undef TL_BINARY
#undef TL_TERNARY
#undef TL_THROUGH_F32

}  // namespace ptx
}  // namespace tl
