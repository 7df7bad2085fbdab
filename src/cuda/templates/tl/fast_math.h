// Approximate functions in float32, by the special function unit; float64 as the precise ones. The
// exponential loses about |x| units in the last place, logarithms near 1 and sines of large numbers
// have a bounded absolute error only.
#pragma once
#include <tl/math.h>

namespace tl {

#define TL_FAST(NAME, F32)                                                     \
  template <class T>                                                           \
  TL_DEVICE T fast_##NAME(T x) {                                               \
    if constexpr (is_same<T, double>::value) return NAME(x);                   \
    else return T(F32(float(x)));                                              \
  }
TL_FAST(exp, ::__expf)
TL_FAST(exp10, ::__exp10f)
TL_FAST(log, ::__logf)
TL_FAST(log2, ::__log2f)
TL_FAST(log10, ::__log10f)
TL_FAST(sin, ::__sinf)
TL_FAST(cos, ::__cosf)
TL_FAST(tan, ::__tanf)
#undef TL_FAST

template <class T>
TL_DEVICE T fast_rcp(T x) {
  if constexpr (is_same<T, double>::value) return 1.0 / x;
  else return T(ptx::rcp_approx(float(x)));
}

}  // namespace tl
