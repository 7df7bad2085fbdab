// Single accesses to memory by their instruction. The emulator has a file of this name in plain C++.
#pragma once
#include <tl/common.h>

namespace tl {
namespace ptx {

// The hardware finds misaligned addresses itself.
TL_DEVICE void require_aligned(const void*, int) {}
// Writes four bits of a byte whose others other threads may write meanwhile.
TL_DEVICE void store_nibble(uint8_t* byte, int shift, unsigned bits) {
  const unsigned old = *static_cast<volatile uint8_t*>(byte);
  const unsigned change = ((old >> shift) ^ bits) & 15u;  // only this thread writes these bits
  const int place = int(reinterpret_cast<uintptr_t>(byte) & 3);
  atomicXor(reinterpret_cast<unsigned*>(byte - place), change << (8 * place + shift));
}

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
