// Functions the device has and C++ has not.
#pragma once
#include <math.h>

#include <tl/common.h>

namespace tl {
namespace ptx {

TL_DEVICE float rsqrt(float x) { return float(1.0 / ::sqrt(double(x))); }
TL_DEVICE double rsqrt(double x) { return 1.0 / ::sqrt(x); }
TL_DEVICE float rcp_approx(float x) { return 1.0f / x; }

TL_DEVICE float round_tfloat32(float x) {
  const unsigned bits = bit_cast<unsigned>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return bit_cast<float>((bits + 0x1000u) & 0xffffe000u);
}

}  // namespace ptx
}  // namespace tl
