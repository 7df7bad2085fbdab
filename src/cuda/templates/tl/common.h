// What every device header needs: the qualifier of its functions and integers of fixed width.
#pragma once

#define TL_DEVICE __device__ __forceinline__

// Inline assembly hides constants from the optimiser, so these take the arithmetic way. nvcc has
// the test for host code only, and NVRTC not in its older versions.
#if defined(__CUDACC_RTC__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1305
#define TL_IS_CONSTANT(x) __builtin_constant_p(x)
#else
#define TL_IS_CONSTANT(x) false
#endif

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#else
#include <stdint.h>
#endif

namespace tl {

template <class To, class From>
TL_DEVICE constexpr To bit_cast(From x) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  return __builtin_bit_cast(To, x);
}

template <class A, class B>
struct is_same {
  static constexpr bool value = false;
};
template <class A>
struct is_same<A, A> {
  static constexpr bool value = true;
};


/// The values of float32 that have no literal; converted where another type is needed.
constexpr float infinity = bit_cast<float>(0x7f800000u);
constexpr float nan = bit_cast<float>(0x7fc00000u);

}  // namespace tl
