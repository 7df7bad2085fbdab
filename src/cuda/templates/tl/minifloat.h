// Floats of one byte and less, and int4 and uint4: storage types that are computed on in float32
// and int32. An element of less than a byte lies in the low bits of its byte.
#pragma once
#include <tl/minifloat_ptx.h>

namespace tl {

template <class F>
struct minifloat {
  uint8_t bits;
  minifloat() = default;
  TL_DEVICE explicit minifloat(float x) : bits(uint8_t(ptx::encode_byte(F(), x))) {}
  TL_DEVICE explicit operator float() const { return ptx::decode_byte(F(), bits); }
  TL_DEVICE static minifloat from_bits(uint8_t bits) {
    minifloat x;
    x.bits = bits;
    return x;
  }
};

using float8_e4m3fn = minifloat<E4M3fn>;
using float8_e4m3 = minifloat<E4M3fn>;
using float8_e5m2 = minifloat<E5M2>;
using float8_e4m3fnuz = minifloat<Format<4, 3, 8, 0x80, 0x80, 0x80, false>>;
using float8_e5m2fnuz = minifloat<Format<5, 2, 16, 0x80, 0x80, 0x80, false>>;
using float8_e4m3b11fnuz = minifloat<Format<4, 3, 11, 0x80, 0x80, 0x80, false>>;
using float8_e3m4 = minifloat<Format<3, 4, 3, 0x70, 0x78, 0x70>>;
using float6_e2m3fn = minifloat<Format<2, 3, 1, 0x1f, 0x20, 0x20>>;
using float6_e3m2fn = minifloat<Format<3, 2, 3, 0x1f, 0x20, 0x20>>;
using float4_e2m1fn = minifloat<Format<2, 1, 1, 0x7, 0x8, 0x8>>;

// A power of two without sign: code 0 is 2^-127, 255 is NaN.
struct float8_e8m0fnu {
  uint8_t bits;
  float8_e8m0fnu() = default;
  TL_DEVICE explicit float8_e8m0fnu(float x) {
    const unsigned code = bit_cast<unsigned>(x);
    const unsigned exponent = (code >> 23) & 0xff, mantissa = code & 0x7fffff;
    const bool up = exponent == 0 ? mantissa > 0x400000 : mantissa >= 0x400000;
    bits = uint8_t(exponent + (up && exponent < 255));
  }
  TL_DEVICE explicit operator float() const {
    const unsigned power = bits == 0 ? 0x400000u : unsigned(bits) << 23;
    return bit_cast<float>(bits == 255 ? 0x7fc00000u : power);
  }
  TL_DEVICE static float8_e8m0fnu from_bits(uint8_t bits) {
    float8_e8m0fnu x;
    x.bits = bits;
    return x;
  }
};

// Integers of four bits; construction keeps the low bits.
struct int4 {
  uint8_t bits;
  int4() = default;
  TL_DEVICE explicit int4(int x) : bits(x & 15) {}
  TL_DEVICE explicit operator int() const { return int(bits ^ 8) - 8; }
  TL_DEVICE static int4 from_bits(uint8_t bits) { return int4(bits); }
};
struct uint4 {
  uint8_t bits;
  uint4() = default;
  TL_DEVICE explicit uint4(int x) : bits(x & 15) {}
  TL_DEVICE explicit operator int() const { return bits; }
  TL_DEVICE static uint4 from_bits(uint8_t bits) { return uint4(bits); }
};

}  // namespace tl
