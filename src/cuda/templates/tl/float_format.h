// Floats of 4 to 16 bits as integer codes: conversion from and to float32 in integer arithmetic.
#pragma once
#include <tl/common.h>

namespace tl {

// A sign-magnitude format with fields of `exponent` and `mantissa` bits. `overflow` is the magnitude
// code of what is too large, `nan` the whole code of NaN, `special` the smallest magnitude code that
// is no finite number (one beyond the largest code if there is none). Without a negative zero, the
// code of the sign bit alone is NaN.
template <int exponent_, int mantissa_, int bias_, unsigned overflow_, unsigned nan_,
          unsigned special_, bool negative_zero_ = true>
struct Format {
  static constexpr int exponent = exponent_, mantissa = mantissa_, bias = bias_;
  static constexpr unsigned overflow = overflow_, nan = nan_, special = special_;
  static constexpr bool negative_zero = negative_zero_;
  static constexpr unsigned sign = 1u << (exponent_ + mantissa_);
};

// Rounds to nearest, ties to even.
template <class F>
TL_DEVICE constexpr unsigned encode(float x) {
  const unsigned bits = bit_cast<unsigned>(x);
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return F::nan;
  const int shift = 23 - F::mantissa;
  unsigned code = 0;
  if (F::bias == 127 || magnitude >= unsigned(128 - F::bias) << 23) {
    const unsigned rounded = magnitude + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1);
    code = (rounded >> shift) - (unsigned(127 - F::bias) << F::mantissa);
  } else {
    // Adding this power of two makes the addition round at the last bit of a subnormal.
    const unsigned anchor = unsigned(127 + 24 - F::mantissa - F::bias) << 23;
    code = bit_cast<unsigned>(bit_cast<float>(magnitude) + bit_cast<float>(anchor)) - anchor;
  }
  if (code >= F::special) code = F::overflow;
  if (!F::negative_zero && code == 0) return 0;
  return code | ((bits >> (31 - F::exponent - F::mantissa)) & F::sign);
}

template <class F>
TL_DEVICE constexpr float decode(unsigned code) {
  const unsigned magnitude = code & (F::sign - 1);
  if (!F::negative_zero && code == F::sign) return bit_cast<float>(0x7fc00000u);
  unsigned bits = (magnitude << (23 - F::mantissa)) + (unsigned(127 - F::bias) << 23);
  if (F::special == F::nan && magnitude >= F::special) {  // a code of NaN and no infinities
    bits = 0x7fc00000u;
  } else if (magnitude >= F::special) {
    bits |= 0x7f800000u;
  } else if (magnitude < 1u << F::mantissa) {
    const unsigned unit = unsigned(127 + 1 - F::bias - F::mantissa) << 23;
    bits = bit_cast<unsigned>(float(magnitude) * bit_cast<float>(unit));
  }
  return bit_cast<float>(bits | ((code & F::sign) << (31 - F::exponent - F::mantissa)));
}

using HalfFormat = Format<5, 10, 15, 0x7c00, 0x7e00, 0x7c00>;
using Bfloat16Format = Format<8, 7, 127, 0x7f80, 0x7fc0, 0x7f80>;

}  // namespace tl
