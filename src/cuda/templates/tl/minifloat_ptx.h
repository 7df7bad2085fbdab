// Conversions of one-byte floats with the instructions of sm_89 and later. The emulator has a file
// of this name in plain C++.
#pragma once
#include <tl/scalar_ptx.h>

namespace tl {

struct E4M3fn : Format<4, 3, 7, 0x7e, 0x7f, 0x7f> {};
struct E5M2 : Format<5, 2, 15, 0x7c, 0x7f, 0x7c> {};

namespace ptx {

template <class F>
TL_DEVICE unsigned encode_byte(F, float x) {
  return encode<F>(x);
}
template <class F>
TL_DEVICE float decode_byte(F, unsigned code) {
  return decode<F>(code);
}

#if __CUDA_ARCH__ >= 890
TL_DEVICE unsigned encode_byte(E4M3fn, float x) {
  if (TL_IS_CONSTANT(x)) return encode<E4M3fn>(x);
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return pair & 0xff;
}
TL_DEVICE unsigned encode_byte(E5M2, float x) {
  if (TL_IS_CONSTANT(x)) return encode<E5M2>(x);
  uint16_t pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  // The instruction saturates; from the middle between 57344 and 65536 the format has infinity.
  return fabsf(x) >= 61440.0f ? (x < 0.0f ? 0xfcu : 0x7cu) : pair & 0xff;
}
TL_DEVICE float decode_byte(E4M3fn, unsigned code) {
  uint32_t pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(uint16_t(code)));
  return f16_to_f32(uint16_t(pair));
}
#endif
// The upper byte of a float16.
TL_DEVICE float decode_byte(E5M2, unsigned code) { return f16_to_f32(uint16_t(code << 8)); }

}  // namespace ptx
}  // namespace tl
