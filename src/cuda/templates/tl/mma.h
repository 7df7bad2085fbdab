/*!
 * \file mma.h
 * \brief Matrix instructions: `mma_m16n8k16_f32_f16_f16_f32(c, a, b)` adds A B to C in place.
 *
 * Operands are the registers of the calling thread in the order PTX gives them. All 32 lanes of a
 * warp call together.
 */
#pragma once

#include <tl/mma_rows.h>

#define TL_MMA_4_2_4f(name, text)                                                           \
  inline __device__ void name(void* c, const void* a, const void* b) {                      \
    float* d = static_cast<float*>(c);                                                      \
    const unsigned* x = static_cast<const unsigned*>(a);                                    \
    const unsigned* y = static_cast<const unsigned*>(b);                                    \
    asm volatile(text "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"     \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                           \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));       \
  }
#define TL_MMA_2_1_4f(name, text)                                                           \
  inline __device__ void name(void* c, const void* a, const void* b) {                      \
    float* d = static_cast<float*>(c);                                                      \
    const unsigned* x = static_cast<const unsigned*>(a);                                    \
    const unsigned* y = static_cast<const unsigned*>(b);                                    \
    asm volatile(text "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                 \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                           \
                 : "r"(x[0]), "r"(x[1]), "r"(y[0]));                                        \
  }
#define TL_MMA_4_2_2r(name, text)                                                           \
  inline __device__ void name(void* c, const void* a, const void* b) {                      \
    unsigned* d = static_cast<unsigned*>(c);                                                \
    const unsigned* x = static_cast<const unsigned*>(a);                                    \
    const unsigned* y = static_cast<const unsigned*>(b);                                    \
    asm volatile(text "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"                     \
                 : "+r"(d[0]), "+r"(d[1])                                                   \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));       \
  }
#define TL_MMA_2_1_2r(name, text)                                                           \
  inline __device__ void name(void* c, const void* a, const void* b) {                      \
    unsigned* d = static_cast<unsigned*>(c);                                                \
    const unsigned* x = static_cast<const unsigned*>(a);                                    \
    const unsigned* y = static_cast<const unsigned*>(b);                                    \
    asm volatile(text "{%0, %1}, {%2, %3}, {%4}, {%0, %1};"                                 \
                 : "+r"(d[0]), "+r"(d[1])                                                   \
                 : "r"(x[0]), "r"(x[1]), "r"(y[0]));                                        \
  }
#define TL_MMA_4_2_4r(name, text)                                                           \
  inline __device__ void name(void* c, const void* a, const void* b) {                      \
    int* d = static_cast<int*>(c);                                                          \
    const unsigned* x = static_cast<const unsigned*>(a);                                    \
    const unsigned* y = static_cast<const unsigned*>(b);                                    \
    asm volatile(text "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"     \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                           \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));       \
  }
#define TL_MMA_2_1_4r(name, text)                                                           \
  inline __device__ void name(void* c, const void* a, const void* b) {                      \
    int* d = static_cast<int*>(c);                                                          \
    const unsigned* x = static_cast<const unsigned*>(a);                                    \
    const unsigned* y = static_cast<const unsigned*>(b);                                    \
    asm volatile(text "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                 \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                           \
                 : "r"(x[0]), "r"(x[1]), "r"(y[0]));                                        \
  }
#define TL_MMA_1_1_2r(name, text)                                                           \
  inline __device__ void name(void* c, const void* a, const void* b) {                      \
    int* d = static_cast<int*>(c);                                                          \
    const unsigned* x = static_cast<const unsigned*>(a);                                    \
    const unsigned* y = static_cast<const unsigned*>(b);                                    \
    asm volatile(text "{%0, %1}, {%2}, {%3}, {%0, %1};"                                     \
                 : "+r"(d[0]), "+r"(d[1])                                                   \
                 : "r"(x[0]), "r"(y[0]));                                                   \
  }
#define TL_MMA_1_1_2d(name, text)                                                           \
  inline __device__ void name(void* c, const void* a, const void* b) {                      \
    double* d = static_cast<double*>(c);                                                    \
    const double* x = static_cast<const double*>(a);                                        \
    const double* y = static_cast<const double*>(b);                                        \
    asm volatile(text "{%0, %1}, {%2}, {%3}, {%0, %1};"                                     \
                 : "+d"(d[0]), "+d"(d[1])                                                   \
                 : "d"(x[0]), "d"(y[0]));                                                   \
  }
#define TL_MMA(M, N, K, D, A, B, registers)                                                 \
  TL_MMA_##registers(mma_m##M##n##N##k##K##_##D##_##A##_##B##_##D,                          \
                     "mma.sync.aligned.m" #M "n" #N "k" #K ".row.col." #D "." #A "." #B "." #D " ")

namespace tl {

TL_MMA_ROWS(TL_MMA)

}  // namespace tl

#undef TL_MMA
#undef TL_MMA_4_2_4f
#undef TL_MMA_2_1_4f
#undef TL_MMA_4_2_2r
#undef TL_MMA_2_1_2r
#undef TL_MMA_4_2_4r
#undef TL_MMA_2_1_4r
#undef TL_MMA_1_1_2r
#undef TL_MMA_1_1_2d
