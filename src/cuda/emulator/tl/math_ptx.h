// Functions the device has and C++ has not.
#pragma once
#include <math.h>

#include <tl/common.h>

namespace tl {
namespace ptx {

TL_DEVICE float rsqrt(float x) { return float(1.0 / ::sqrt(double(x))); }
TL_DEVICE double rsqrt(double x) { return 1.0 / ::sqrt(x); }
TL_DEVICE float rcp_approx(float x) { return 1.0f / x; }

}  // namespace ptx
}  // namespace tl
