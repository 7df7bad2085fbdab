/*!
 * \file minifloat.h
 * \brief Narrow floating-point formats of matrix operands.
 */
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tl_emu {

/*! \brief What the largest exponent means: as in IEEE 754, or numbers except for one NaN. */
enum class Special { kIeee, kNanOnly };

inline float BitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <int kExponent, int kMantissa, Special kSpecial>
inline double DecodeFloat(uint32_t bits) {
  constexpr uint32_t kMagnitude = (1u << (kExponent + kMantissa)) - 1;
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  uint32_t magnitude = bits & kMagnitude;
  // The bits of a float with the same fields; the multiplication moves the exponent bias and
  // turns subnormal numbers into normal ones.
  float value = BitsToFloat(magnitude << (23 - kMantissa)) *
                BitsToFloat(static_cast<uint32_t>(127 + 127 - kBias) << 23);
  if (kSpecial == Special::kNanOnly) {
    if (magnitude == kMagnitude) value = NAN;
  } else if (magnitude >> kMantissa == (1u << kExponent) - 1) {
    value = (magnitude & ((1u << kMantissa) - 1)) != 0 ? NAN : INFINITY;
  }
  return bits >> (kExponent + kMantissa) & 1u ? -value : value;
}

/*! \brief Round to half precision, ties to even. */
inline uint16_t EncodeHalf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7fff;
  if (magnitude >= 65520.0) return sign | 0x7c00;
  if (magnitude == 0.0) return sign;  // has no leading bit
  int exponent;
  std::frexp(magnitude, &exponent);
  // The distance of neighbours: 2^-24 among subnormals, else 11 bits below the leading one.
  int scale = exponent - 11 < -24 ? -24 : exponent - 11;
  auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -scale)));
  // A carry out of the mantissa runs into the exponent field, as it should.
  uint32_t field = scale == -24 ? steps : (static_cast<uint32_t>(scale + 24) << 10) + steps;
  return static_cast<uint16_t>(sign | field);
}

}  // namespace tl_emu
