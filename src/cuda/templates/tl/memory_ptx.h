// Single accesses to memory by their instruction. The emulator has a file of this name in plain C++.
#pragma once
#include <tl/common.h>

namespace tl {
namespace ptx {

TL_DEVICE void xor_word(unsigned* word, unsigned bits) { atomicXor(word, bits); }

}  // namespace ptx

// Through the read-only cache.
template <class T>
TL_DEVICE T ldg(const T* p) {
  T x;
  if constexpr (sizeof(T) == 1) {
    x = bit_cast<T>(__ldg(reinterpret_cast<const uint8_t*>(p)));
  } else if constexpr (sizeof(T) == 2) {
    x = bit_cast<T>(__ldg(reinterpret_cast<const uint16_t*>(p)));
  } else if constexpr (sizeof(T) == 4) {
    x = bit_cast<T>(__ldg(reinterpret_cast<const uint32_t*>(p)));
  } else if constexpr (sizeof(T) == 8) {
    x = bit_cast<T>(__ldg(reinterpret_cast<const uint64_t*>(p)));
  } else {
    x = *p;
  }
  return x;
}

}  // namespace tl
