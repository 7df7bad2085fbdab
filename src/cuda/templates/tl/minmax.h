// Minimum and maximum. With one NaN the number wins; the `_nan` forms give NaN.
#pragma once
#include <tl/types.h>

namespace tl {

template <class T>
TL_DEVICE T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
TL_DEVICE T max(T a, T b) {
  return a < b ? b : a;
}
TL_DEVICE float min(float a, float b) { return ptx::number_min(a, b); }
TL_DEVICE float max(float a, float b) { return ptx::number_max(a, b); }
TL_DEVICE double min(double a, double b) { return ptx::number_min(a, b); }
TL_DEVICE double max(double a, double b) { return ptx::number_max(a, b); }
TL_DEVICE half min(half a, half b) { return half::from_bits(ptx::f16_min(a.bits, b.bits)); }
TL_DEVICE half max(half a, half b) { return half::from_bits(ptx::f16_max(a.bits, b.bits)); }
TL_DEVICE bfloat16 min(bfloat16 a, bfloat16 b) {
  return bfloat16::from_bits(ptx::bf16_min(a.bits, b.bits));
}
TL_DEVICE bfloat16 max(bfloat16 a, bfloat16 b) {
  return bfloat16::from_bits(ptx::bf16_max(a.bits, b.bits));
}

template <class T>
TL_DEVICE T min_nan(T a, T b) {
  return a != a ? a : b != b ? b : min(a, b);
}
template <class T>
TL_DEVICE T max_nan(T a, T b) {
  return a != a ? a : b != b ? b : max(a, b);
}

}  // namespace tl
