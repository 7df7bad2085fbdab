// Wide accesses to memory, and elements that share a byte.
#pragma once
#include <tl/memory_ptx.h>

namespace tl {

template <int bytes>
struct alignas(bytes > 16 ? 16 : bytes) chunk {
  unsigned word[bytes / 4];
};
template <>
struct alignas(2) chunk<2> {
  uint16_t word[1];
};
template <>
struct chunk<1> {
  uint8_t word[1];
};

// One access of 1 to 32 bytes; both addresses are aligned to it (to 16 bytes for 32).
template <int bytes>
TL_DEVICE void vec_copy(void* dst, const void* src) {
  ptx::require_aligned(dst, alignof(chunk<bytes>));
  ptx::require_aligned(src, alignof(chunk<bytes>));
  *static_cast<chunk<bytes>*>(dst) = *static_cast<const chunk<bytes>*>(src);
}
template <int bytes>
TL_DEVICE void vec_zero(void* dst) {
  ptx::require_aligned(dst, alignof(chunk<bytes>));
  *static_cast<chunk<bytes>*>(dst) = chunk<bytes>{};
}

// Element `index` of an array that holds two a byte, the first one in the low bits.
template <class T>
TL_DEVICE T load_sub(const void* array, int64_t index) {
  const uint8_t byte = static_cast<const uint8_t*>(array)[index >> 1];
  return T::from_bits((byte >> (4 * (index & 1))) & 15);
}
template <class T>
TL_DEVICE void store_sub(void* array, int64_t index, T x) {
  uint8_t& byte = static_cast<uint8_t*>(array)[index >> 1];
  const int shift = 4 * int(index & 1);
  byte = uint8_t((byte & ~(15 << shift)) | ((x.bits & 15) << shift));
}
// The same in memory that other threads write: the neighbour in the byte is left alone.
template <class T>
TL_DEVICE void store_sub_shared(void* array, int64_t index, T x) {
  ptx::store_nibble(static_cast<uint8_t*>(array) + (index >> 1), 4 * int(index & 1), x.bits & 15u);
}

}  // namespace tl
