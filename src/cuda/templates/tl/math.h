// Elementary functions. float32 and float64 are computed as they are, other floats in float32 and
// rounded once.
#pragma once
#include <tl/math_ptx.h>

namespace tl {

template <class T>
struct is_float32_or_64 {
  static constexpr bool value = is_same<T, float>::value || is_same<T, double>::value;
};

#define TL_UNARY(NAME, F32, F64)                         \
  TL_DEVICE float NAME(float x) { return F32(x); }       \
  TL_DEVICE double NAME(double x) { return F64(x); }     \
  template <class T>                                     \
  TL_DEVICE T NAME(T x) {                                \
    return T(NAME(float(x)));                            \
  }
#define TL_BINARY(NAME, F32, F64)                                     \
  TL_DEVICE float NAME(float x, float y) { return F32(x, y); }        \
  TL_DEVICE double NAME(double x, double y) { return F64(x, y); }     \
  template <class T>                                                  \
  TL_DEVICE T NAME(T x, T y) {                                        \
    return T(NAME(float(x), float(y)));                               \
  }

TL_UNARY(exp, ::expf, ::exp)
TL_UNARY(exp2, ::exp2f, ::exp2)
TL_UNARY(exp10, ::exp10f, ::exp10)
TL_UNARY(log, ::logf, ::log)
TL_UNARY(log2, ::log2f, ::log2)
TL_UNARY(log10, ::log10f, ::log10)
TL_UNARY(log1p, ::log1pf, ::log1p)
TL_UNARY(sin, ::sinf, ::sin)
TL_UNARY(cos, ::cosf, ::cos)
TL_UNARY(tan, ::tanf, ::tan)
TL_UNARY(asin, ::asinf, ::asin)
TL_UNARY(acos, ::acosf, ::acos)
TL_UNARY(atan, ::atanf, ::atan)
TL_UNARY(sinh, ::sinhf, ::sinh)
TL_UNARY(cosh, ::coshf, ::cosh)
TL_UNARY(tanh, ::tanhf, ::tanh)
TL_UNARY(asinh, ::asinhf, ::asinh)
TL_UNARY(acosh, ::acoshf, ::acosh)
TL_UNARY(atanh, ::atanhf, ::atanh)
TL_UNARY(erf, ::erff, ::erf)
TL_UNARY(sqrt, ::sqrtf, ::sqrt)
TL_UNARY(rsqrt, ptx::rsqrt, ptx::rsqrt)
TL_UNARY(floor, ::floorf, ::floor)
TL_UNARY(ceil, ::ceilf, ::ceil)
TL_UNARY(trunc, ::truncf, ::trunc)
TL_UNARY(round, ::roundf, ::round)
TL_UNARY(nearbyint, ::rintf, ::rint)
TL_UNARY(abs, ::fabsf, ::fabs)
TL_BINARY(atan2, ::atan2f, ::atan2)
TL_BINARY(hypot, ::hypotf, ::hypot)
TL_BINARY(fmod, ::fmodf, ::fmod)
TL_BINARY(pow, ::powf, ::pow)
TL_BINARY(copysign, ::copysignf, ::copysign)
#undef TL_UNARY
#undef TL_BINARY

// 1 / (1 + exp(-x)) without overflow on either side.
template <class T>
TL_DEVICE T sigmoid(T x) {
  if constexpr (is_float32_or_64<T>::value) {
    const T e = exp(-abs(x));
    return (x >= T(0) ? T(1) : e) / (T(1) + e);
  } else {
    return T(sigmoid(float(x)));
  }
}

TL_DEVICE float ldexp(float x, int n) { return ::ldexpf(x, n); }
TL_DEVICE double ldexp(double x, int n) { return ::ldexp(x, n); }
template <class T>
TL_DEVICE T ldexp(T x, int n) {
  return T(::ldexpf(float(x), n));
}

TL_DEVICE float nextafter(float x, float y) { return ::nextafterf(x, y); }
TL_DEVICE double nextafter(double x, double y) { return ::nextafter(x, y); }
// The neighbouring code of a float of 16 bits.
template <class T>
TL_DEVICE T nextafter(T x, T y) {
  const float a = float(x), b = float(y);
  if (a != a || b != b) return T::from_bits(0x7fff);
  if (a == b) return y;
  if (a == 0.0f) return T::from_bits(b < 0.0f ? 0x8001 : 1);
  return T::from_bits(uint16_t((a < b) == (a > 0.0f) ? x.bits + 1 : x.bits - 1));
}

template <class T>
TL_DEVICE bool isnan(T x) {
  if constexpr (is_float32_or_64<T>::value) return x != x;
  else return isnan(float(x));
}
template <class T>
TL_DEVICE bool isinf(T x) {
  if constexpr (is_same<T, double>::value) return ::fabs(x) == bit_cast<double>(0x7ff0000000000000ull);
  else return ::fabsf(float(x)) == bit_cast<float>(0x7f800000u);
}
template <class T>
TL_DEVICE bool isfinite(T x) {
  return !isnan(x) && !isinf(x);
}

TL_DEVICE float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
TL_DEVICE double fma(double x, double y, double z) { return ::fma(x, y, z); }

// The nearest value with 10 mantissa bits, halves away from zero.
TL_DEVICE float round_tfloat32(float x) { return ptx::round_tfloat32(x); }
template <class T>
TL_DEVICE float round_tfloat32(T x) {
  return round_tfloat32(float(x));
}

}  // namespace tl
