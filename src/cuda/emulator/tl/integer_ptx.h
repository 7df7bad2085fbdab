// Bit counts: what the instructions of the device header compute.
#pragma once
#include <tl/common.h>

namespace tl {
namespace ptx {

TL_DEVICE int popcount_word(unsigned x) { return __builtin_popcount(x); }
TL_DEVICE int popcount_wide(uint64_t x) { return __builtin_popcountll(x); }
TL_DEVICE int clz_word(unsigned x) { return x == 0 ? 32 : __builtin_clz(x); }
TL_DEVICE int clz_wide(uint64_t x) { return x == 0 ? 64 : __builtin_clzll(x); }

}  // namespace ptx
}  // namespace tl
