// Arithmetic with a rounding mode: the host's floating-point unit has the modes too.
#pragma once
#include <cfenv>
#include <cmath>

#include <tl/scalar_ptx.h>

namespace tl {

enum rounding { rn, rz, ru, rd };

namespace ptx {

template <rounding mode>
struct Rounding {
  int before = std::fegetround();
  Rounding() {
    constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
    std::fesetround(modes[mode]);
  }
  ~Rounding() { std::fesetround(before); }
};

// Volatile operands keep the compiler from computing in another mode.
#define TL_COPIES(...) __VA_ARGS__
#define TL_ROUNDED(NAME, T, PARAMETERS, COPIES, RESULT) \
  template <rounding mode>                              \
  inline T NAME PARAMETERS {                            \
    const Rounding<mode> scope;                         \
    volatile T COPIES;                                  \
    volatile T result = RESULT;                         \
    return result;                                      \
  }
TL_ROUNDED(add, float, (float x, float y), TL_COPIES(a = x, b = y), a + b)
TL_ROUNDED(add, double, (double x, double y), TL_COPIES(a = x, b = y), a + b)
TL_ROUNDED(sub, float, (float x, float y), TL_COPIES(a = x, b = y), a - b)
TL_ROUNDED(sub, double, (double x, double y), TL_COPIES(a = x, b = y), a - b)
TL_ROUNDED(mul, float, (float x, float y), TL_COPIES(a = x, b = y), a * b)
TL_ROUNDED(mul, double, (double x, double y), TL_COPIES(a = x, b = y), a * b)
TL_ROUNDED(fdiv, float, (float x, float y), TL_COPIES(a = x, b = y), a / b)
TL_ROUNDED(fdiv, double, (double x, double y), TL_COPIES(a = x, b = y), a / b)
TL_ROUNDED(fmaf, float, (float x, float y, float z), TL_COPIES(a = x, b = y, c = z), std::fma(float(a), float(b), float(c)))
TL_ROUNDED(fmaf, double, (double x, double y, double z), TL_COPIES(a = x, b = y, c = z), std::fma(double(a), double(b), double(c)))
TL_ROUNDED(frcp, float, (float x), a = x, 1 / a)
TL_ROUNDED(frcp, double, (double x), a = x, 1 / a)
TL_ROUNDED(fsqrt, float, (float x), a = x, std::sqrt(float(a)))
TL_ROUNDED(fsqrt, double, (double x), a = x, std::sqrt(double(a)))
#undef TL_ROUNDED
#undef TL_COPIES

}  // namespace ptx
}  // namespace tl
