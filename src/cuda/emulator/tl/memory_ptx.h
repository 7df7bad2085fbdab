// Single accesses to memory: what the instructions of the device header do.
#pragma once
#include <tl/common.h>

namespace tl {
namespace ptx {

TL_DEVICE void xor_word(unsigned* word, unsigned bits) {
  __atomic_fetch_xor(word, bits, __ATOMIC_RELAXED);
}

}  // namespace ptx

template <class T>
TL_DEVICE T ldg(const T* p) {
  return *p;
}

}  // namespace tl
