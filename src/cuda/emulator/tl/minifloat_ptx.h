// Conversions of one-byte floats: what the instructions of the device header compute.
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

}  // namespace ptx
}  // namespace tl
