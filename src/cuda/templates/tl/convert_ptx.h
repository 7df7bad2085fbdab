// Saturating conversion of float32 and float64 to integers; the hardware clamps. The emulator has a
// file of this name in plain C++.
#pragma once
#include <tl/common.h>

namespace tl {

struct int4;
struct uint4;

namespace ptx {

template <class To>
TL_DEVICE To saturate_word(float x) {
  if constexpr (is_same<To, int>::value) return __float2int_rz(x);
  else return __float2uint_rz(x);
}
// With float64 on either side the instruction makes NaN something else than 0.
template <class To>
TL_DEVICE To saturate_word(double x) {
  if (x != x) return 0;
  if constexpr (is_same<To, int>::value) return __double2int_rz(x);
  else return __double2uint_rz(x);
}
template <class To>
TL_DEVICE To saturate_wide(float x) {
  if (x != x) return 0;
  if constexpr (is_same<To, int64_t>::value) return __float2ll_rz(x);
  else return __float2ull_rz(x);
}
template <class To>
TL_DEVICE To saturate_wide(double x) {
  if (x != x) return 0;
  if constexpr (is_same<To, int64_t>::value) return __double2ll_rz(x);
  else return __double2ull_rz(x);
}

}  // namespace ptx
}  // namespace tl
