// Bit counts in one instruction. The emulator has a file of this name in plain C++.
#pragma once
#include <tl/common.h>

namespace tl {
namespace ptx {

TL_DEVICE int popcount_word(unsigned x) { return __popc(x); }
TL_DEVICE int popcount_wide(uint64_t x) { return __popcll(x); }
TL_DEVICE int clz_word(unsigned x) { return __clz(x); }
TL_DEVICE int clz_wide(uint64_t x) { return __clzll(x); }

}  // namespace ptx
}  // namespace tl
