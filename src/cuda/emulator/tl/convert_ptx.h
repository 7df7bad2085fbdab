// Saturating conversion of float32 and float64 to integers, which C++ leaves undefined.
#pragma once
#include <limits>

#include <tl/common.h>

namespace tl {

struct int4;
struct uint4;

namespace ptx {

template <class To, class From>
TL_DEVICE To saturate_any(From x) {
  using limits = std::numeric_limits<To>;
  if (x != x) return 0;
  // The upper limit may round up to the first integer outside.
  if (x >= From(limits::max())) return limits::max();
  if (x <= From(limits::min())) return limits::min();
  return To(x);
}
template <class To, class From>
TL_DEVICE To saturate_word(From x) {
  return saturate_any<To>(x);
}
template <class To, class From>
TL_DEVICE To saturate_wide(From x) {
  return saturate_any<To>(x);
}

}  // namespace ptx
}  // namespace tl
