/*!
 * \file ldmatrix.h
 * \brief Loads and stores of 8x8 matrices of 16-bit elements between shared memory and registers.
 *
 * Lane `8 * i + r` gives the address of row `r` of matrix `i`; a row is 16 bytes, 16-byte aligned.
 * Register `i` of lane `l` holds elements `2 * (l % 4)` and the next of row `l / 4` of matrix `i`,
 * of the transposed matrix if `transposed`.
 */
#pragma once

namespace tl {

#define TL_MATRIX_ADDRESS(pointer) static_cast<unsigned>(__cvta_generic_to_shared(pointer))

template <bool transposed>
inline __device__ void ldmatrix_x1(void* registers, const void* row) {
  unsigned* r = static_cast<unsigned*>(registers);
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r[0]) : "r"(TL_MATRIX_ADDRESS(row)) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(r[0]) : "r"(TL_MATRIX_ADDRESS(row)) : "memory");
  }
}

template <bool transposed>
inline __device__ void ldmatrix_x2(void* registers, const void* row) {
  unsigned* r = static_cast<unsigned*>(registers);
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(TL_MATRIX_ADDRESS(row)) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(TL_MATRIX_ADDRESS(row)) : "memory");
  }
}

template <bool transposed>
inline __device__ void ldmatrix_x4(void* registers, const void* row) {
  unsigned* r = static_cast<unsigned*>(registers);
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(TL_MATRIX_ADDRESS(row)) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(TL_MATRIX_ADDRESS(row)) : "memory");
  }
}

// Stores exist from sm_90 on.
template <bool transposed>
inline __device__ void stmatrix_x1(void* row, const void* registers) {
  const unsigned* r = static_cast<const unsigned*>(registers);
  if (transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                 :: "r"(TL_MATRIX_ADDRESS(row)), "r"(r[0]) : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                 :: "r"(TL_MATRIX_ADDRESS(row)), "r"(r[0]) : "memory");
  }
}

template <bool transposed>
inline __device__ void stmatrix_x2(void* row, const void* registers) {
  const unsigned* r = static_cast<const unsigned*>(registers);
  if (transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 :: "r"(TL_MATRIX_ADDRESS(row)), "r"(r[0]), "r"(r[1]) : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                 :: "r"(TL_MATRIX_ADDRESS(row)), "r"(r[0]), "r"(r[1]) : "memory");
  }
}

template <bool transposed>
inline __device__ void stmatrix_x4(void* row, const void* registers) {
  const unsigned* r = static_cast<const unsigned*>(registers);
  if (transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(TL_MATRIX_ADDRESS(row)), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(TL_MATRIX_ADDRESS(row)), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  }
}

#undef TL_MATRIX_ADDRESS

}  // namespace tl
