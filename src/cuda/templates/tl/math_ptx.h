// Functions the device has and C++ has not. The emulator has a file of this name in plain C++.
#pragma once
#include <tl/common.h>

namespace tl {
namespace ptx {

TL_DEVICE float rsqrt(float x) { return ::rsqrtf(x); }
TL_DEVICE double rsqrt(double x) { return ::rsqrt(x); }

TL_DEVICE float rcp_approx(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace ptx
}  // namespace tl
