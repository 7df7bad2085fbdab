/*!
 * \file mma_sparse.h
 * \brief Matrix instructions whose A has two zeros in every four elements along k (sm_80).
 *
 * `mma_sp_<row><selector>(c, a, b, e)`: `a` holds the elements that may differ from zero, the 32-bit
 * word `e` where they stand; `selector` names the lanes of a quad that give it.
 */
#pragma once

#define TL_MMA_SPARSE(M, N, K, D, A, B, letter, word)                                            \
  template <int selector>                                                                        \
  inline __device__ void mma_sp_m##M##n##N##k##K##_##D##_##A##_##B##_##D(                        \
      void* c, const void* a, const void* b, const void* e) {                                    \
    word* sums = static_cast<word*>(c);                                                          \
    const unsigned* x = static_cast<const unsigned*>(a);                                         \
    const unsigned* y = static_cast<const unsigned*>(b);                                         \
    asm volatile("mma.sp.sync.aligned.m" #M "n" #N "k" #K ".row.col." #D "." #A "." #B "." #D    \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, "   \
                 "%12, %13;"                                                                     \
                 : "+" letter(sums[0]), "+" letter(sums[1]), "+" letter(sums[2]),                \
                   "+" letter(sums[3])                                                           \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]),  \
                   "r"(y[3]), "r"(*static_cast<const unsigned*>(e)), "n"(selector));             \
  }

namespace tl {

TL_MMA_SPARSE(16, 8, 32, f32, f16, f16, "f", float)
TL_MMA_SPARSE(16, 8, 32, f32, bf16, bf16, "f", float)
TL_MMA_SPARSE(16, 8, 16, f32, tf32, tf32, "f", float)
TL_MMA_SPARSE(16, 8, 64, s32, s8, s8, "r", int)
TL_MMA_SPARSE(16, 8, 64, s32, u8, u8, "r", int)

}  // namespace tl

#undef TL_MMA_SPARSE
