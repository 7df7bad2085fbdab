// Single accesses to memory: what the instructions of the device header do.
#pragma once
#include <tl/common.h>
#include <tl/emulator/atomics.h>

namespace tl {
namespace ptx {

TL_DEVICE void require_aligned(const void* p, int bytes) {
  if (reinterpret_cast<uintptr_t>(p) % bytes != 0) tl_emu::tl_emu_misaligned(p, bytes);
}
TL_DEVICE void store_nibble(uint8_t* byte, int shift, unsigned bits) {
  tl_emu::AtomicUpdate(
      byte, [=](uint8_t old) { return uint8_t((old & ~(15u << shift)) | bits << shift); },
      tl_emu::Order::kRelaxed);
}

}  // namespace ptx

template <class T>
TL_DEVICE T ldg(const T* p) {
  return *p;
}

}  // namespace tl
