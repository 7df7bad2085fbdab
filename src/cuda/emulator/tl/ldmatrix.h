/*!
 * \file ldmatrix.h
 * \brief Loads and stores of 8x8 matrices, emulated; the twin of templates/tl/ldmatrix.h.
 */
#pragma once

#include "emulator/runtime.h"

namespace tl {

#define TL_MATRIX(count)                                                       \
  template <bool transposed>                                                   \
  inline void ldmatrix_x##count(void* registers, const void* row) {            \
    tl_emu::tl_emu_load_matrix(registers, row, count, transposed);             \
  }                                                                            \
  template <bool transposed>                                                   \
  inline void stmatrix_x##count(void* row, const void* registers) {            \
    tl_emu::tl_emu_store_matrix(row, registers, count, transposed);            \
  }
TL_MATRIX(1)
TL_MATRIX(2)
TL_MATRIX(4)
#undef TL_MATRIX

}  // namespace tl
