// Conversions between numbers of every type: integers wrap, floats round once to nearest even, a
// float becomes the integer toward zero, saturates, and NaN becomes 0.
#pragma once
#include <tl/convert_ptx.h>

namespace tl {

template <class T>
struct is_integer {
  static constexpr bool value = is_same<T, int8_t>::value || is_same<T, uint8_t>::value ||
                                is_same<T, int16_t>::value || is_same<T, uint16_t>::value ||
                                is_same<T, int>::value || is_same<T, unsigned>::value ||
                                is_same<T, int64_t>::value || is_same<T, uint64_t>::value;
};
template <class T>
struct is_wide_float {
  static constexpr bool value = is_same<T, float>::value || is_same<T, double>::value;
};

// float64 to float32; inexact results go to the neighbour whose last bit is odd, so that rounding
// again to a type two bits shorter rounds once (Boldo and Melquiond, 2008).
TL_DEVICE float odd_float(double x) {
  const float near = float(x);
  const double back = double(near);
  if (back == x || x != x) return near;
  const uint32_t bits = bit_cast<uint32_t>(near);
  const bool up = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  return bit_cast<float>((up ? bits - 1 : bits) | 1u);
}

// An integer of 64 bits as the float64 that rounds to a short float as the integer would: from 2^53
// on the low bits become one sticky bit.
template <class T>
TL_DEVICE double sticky_double(T x) {
  const T bound = T(1) << 53;
  const bool large = x >= bound || (T(-1) < T(0) && x <= T(0) - bound);
  const T low = x & T(0x7ff);
  return double(large && low != 0 ? ((x ^ low) | T(0x800)) : x);
}

// The float32 from which rounding to a short float rounds only once.
template <class From>
TL_DEVICE float nearly_float(From x) {
  if constexpr (is_same<From, double>::value) {
    return odd_float(x);
  } else if constexpr (is_integer<From>::value && sizeof(From) == 8) {
    return odd_float(sticky_double(x));
  } else if constexpr (is_integer<From>::value && sizeof(From) == 4) {
    return odd_float(double(x));
  } else if constexpr (is_same<From, int4>::value || is_same<From, uint4>::value) {
    return float(int(x));
  } else {
    return float(x);
  }
}

template <class To, class From>
TL_DEVICE To saturate(From x) {
  if constexpr (sizeof(To) == 8) {
    return ptx::saturate_wide<To>(x);
  } else if constexpr (sizeof(To) == 4) {
    return ptx::saturate_word<To>(x);
  } else {
    constexpr int low = To(-1) < To(0) ? -(1 << (8 * sizeof(To) - 1)) : 0;
    constexpr int high = (1 << (8 * sizeof(To) - (low < 0))) - 1;
    const int whole = ptx::saturate_word<int>(x);
    return To(whole < low ? low : whole > high ? high : whole);
  }
}

template <class To, class From>
TL_DEVICE To cast(From x) {
  constexpr bool from_integer = is_integer<From>::value || is_same<From, bool>::value;
  constexpr bool from_nibble = is_same<From, int4>::value || is_same<From, uint4>::value;
  constexpr bool to_nibble = is_same<To, int4>::value || is_same<To, uint4>::value;
  if constexpr (is_same<To, From>::value) {
    return x;
  } else if constexpr (from_nibble && !is_wide_float<To>::value) {
    return cast<To>(int(x));
  } else if constexpr (from_nibble) {
    return To(int(x));
  } else if constexpr (is_same<To, bool>::value) {
    if constexpr (from_integer || is_wide_float<From>::value) {
      return x != From(0);
    } else {
      return float(x) != 0.0f;
    }
  } else if constexpr (to_nibble && from_integer) {
    return To(int(x));
  } else if constexpr (to_nibble || is_integer<To>::value) {
    if constexpr (from_integer) {
      return To(x);
    } else if constexpr (!is_wide_float<From>::value) {
      return cast<To>(float(x));
    } else if constexpr (to_nibble) {
      constexpr int low = is_same<To, int4>::value ? -8 : 0, high = low + 15;
      const int whole = ptx::saturate_word<int>(x);
      return To(whole < low ? low : whole > high ? high : whole);
    } else {
      return saturate<To>(x);
    }
  } else if constexpr (is_wide_float<To>::value) {
    if constexpr (from_integer || is_wide_float<From>::value) {
      return To(x);
    } else {
      return To(float(x));
    }
  } else {
    return To(nearly_float(x));
  }
}

}  // namespace tl
