/*!
 * \file mma_sparse.h
 * \brief Refuses what templates/tl/mma_sparse.h has, of which there is no emulated twin.
 */
#pragma once

namespace tl {

#define TL_MMA_SPARSE(name)                                                                    \
  template <int selector>                                                                      \
  inline void name(void*, const void*, const void*, const void*) {                             \
    static_assert(selector < 0, "T.ptx_mma_sp: the emulator has no sparse matrix instructions"); \
  }
TL_MMA_SPARSE(mma_sp_m16n8k32_f32_f16_f16_f32)
TL_MMA_SPARSE(mma_sp_m16n8k32_f32_bf16_bf16_f32)
TL_MMA_SPARSE(mma_sp_m16n8k16_f32_tf32_tf32_f32)
TL_MMA_SPARSE(mma_sp_m16n8k64_s32_s8_s8_s32)
TL_MMA_SPARSE(mma_sp_m16n8k64_s32_u8_u8_s32)
#undef TL_MMA_SPARSE

}  // namespace tl
