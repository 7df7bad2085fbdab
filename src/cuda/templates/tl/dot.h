// Dot products of four bytes.
#pragma once
#include <tl/vec.h>

namespace tl {

TL_DEVICE int dp4a(const vec<int8_t, 4>& a, const vec<int8_t, 4>& b, int c) {
  return __dp4a(bit_cast<int>(a), bit_cast<int>(b), c);
}
TL_DEVICE unsigned dp4a(const vec<uint8_t, 4>& a, const vec<uint8_t, 4>& b, unsigned c) {
  return __dp4a(bit_cast<unsigned>(a), bit_cast<unsigned>(b), c);
}

}  // namespace tl
