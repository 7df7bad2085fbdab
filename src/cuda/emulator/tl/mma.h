/*!
 * \file mma.h
 * \brief Matrix instructions, emulated; the twin of templates/tl/mma.h.
 */
#pragma once

#include <tl/mma_rows.h>

#include "emulator/runtime.h"

namespace tl {
namespace mma_types {

using tl_emu::Element;
constexpr Element f16 = Element::kF16;
constexpr Element bf16 = Element::kBF16;
constexpr Element tf32 = Element::kTF32;
constexpr Element f64 = Element::kF64;
constexpr Element s8 = Element::kS8;
constexpr Element u8 = Element::kU8;
constexpr Element s4 = Element::kS4;
constexpr Element u4 = Element::kU4;
constexpr Element e4m3 = Element::kE4M3;
constexpr Element e5m2 = Element::kE5M2;
constexpr Element f32 = Element::kF32;
constexpr Element s32 = Element::kS32;

}  // namespace mma_types

#define TL_MMA(M, N, K, D, A, B, registers)                                                 \
  inline void mma_m##M##n##N##k##K##_##D##_##A##_##B##_##D(void* c, const void* a,          \
                                                           const void* b) {                 \
    static constexpr tl_emu::MmaShape shape = {M, N, K, mma_types::D, mma_types::A,         \
                                               mma_types::B};                               \
    tl_emu::tl_emu_mma(&shape, c, a, b);                                                    \
  }

TL_MMA_ROWS(TL_MMA)

#undef TL_MMA

}  // namespace tl
