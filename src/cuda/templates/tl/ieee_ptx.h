// Arithmetic with a rounding mode, by its instruction. The emulator has a file of this name in plain
// C++.
#pragma once
#include <tl/common.h>

namespace tl {

enum rounding { rn, rz, ru, rd };

namespace ptx {

#define TL_ROUNDED(NAME, T, FUNCTION, PARAMETERS, ARGUMENTS)       \
  template <rounding mode>                                         \
  TL_DEVICE T NAME PARAMETERS {                                    \
    if constexpr (mode == rn) return FUNCTION##_rn ARGUMENTS;      \
    else if constexpr (mode == rz) return FUNCTION##_rz ARGUMENTS; \
    else if constexpr (mode == ru) return FUNCTION##_ru ARGUMENTS; \
    else return FUNCTION##_rd ARGUMENTS;                           \
  }
TL_ROUNDED(add, float, __fadd, (float x, float y), (x, y))
TL_ROUNDED(add, double, __dadd, (double x, double y), (x, y))
TL_ROUNDED(sub, float, __fsub, (float x, float y), (x, y))
TL_ROUNDED(sub, double, __dsub, (double x, double y), (x, y))
TL_ROUNDED(mul, float, __fmul, (float x, float y), (x, y))
TL_ROUNDED(mul, double, __dmul, (double x, double y), (x, y))
TL_ROUNDED(fdiv, float, __fdiv, (float x, float y), (x, y))
TL_ROUNDED(fdiv, double, __ddiv, (double x, double y), (x, y))
TL_ROUNDED(fmaf, float, __fmaf, (float x, float y, float z), (x, y, z))
TL_ROUNDED(fmaf, double, __fma, (double x, double y, double z), (x, y, z))
TL_ROUNDED(frcp, float, __frcp, (float x), (x))
TL_ROUNDED(frcp, double, __drcp, (double x), (x))
TL_ROUNDED(fsqrt, float, __fsqrt, (float x), (x))
TL_ROUNDED(fsqrt, double, __dsqrt, (double x), (x))
#undef TL_ROUNDED

// a + b as the float32 that rounds to a shorter float as the exact sum does.
TL_DEVICE float sum_to_odd(double a, double b) {
  double sum = __dadd_rz(a, b);
  if (__dadd_rd(a, b) != __dadd_ru(a, b)) sum = bit_cast<double>(bit_cast<uint64_t>(sum) | 1u);
  const float cut = __double2float_rz(sum);
  if (double(cut) == sum || sum != sum) return cut;
  return bit_cast<float>(bit_cast<uint32_t>(cut) | 1u);
}

}  // namespace ptx
}  // namespace tl
