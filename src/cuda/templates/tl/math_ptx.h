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

TL_DEVICE float round_tfloat32(float x) {
#if __CUDA_ARCH__ >= 800
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bit_cast<float>(bits);
#else
  const unsigned bits = bit_cast<unsigned>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return bit_cast<float>((bits + 0x1000u) & 0xffffe000u);
#endif
}

}  // namespace ptx
}  // namespace tl
