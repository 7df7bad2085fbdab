// Accesses of 32 to 256 bits as words of 32. Where the predicate does not hold, zeros are read and
// nothing is written.
#pragma once
#include <tl/memory.h>
#include <tl/vec.h>

namespace tl {

template <int n>
struct words {
  using type = vec<unsigned, n>;
};
template <>
struct words<1> {
  using type = unsigned;
};

template <int n>
TL_DEVICE typename words<n>::type load_words(const void* address, bool enabled = true) {
  typename words<n>::type x;
  if (enabled) vec_copy<4 * n>(&x, address);
  else vec_zero<4 * n>(&x);
  return x;
}
template <int n, class T>
TL_DEVICE void store_words(void* address, T x, bool enabled = true) {
  static_assert(sizeof(T) == 4 * n, "a value of that many words");
  if (enabled) vec_copy<4 * n>(address, &x);
}

}  // namespace tl
