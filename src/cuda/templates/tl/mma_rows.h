/*!
 * \file mma_rows.h
 * \brief Every matrix instruction there is a wrapper for; the same list as mma_rows.py.
 *
 * `ROW(m, n, k, d, a, b, registers)`: shape, PTX names of the types of D (and C), A and B, and the
 * registers of a thread: A, B, D, with the constraint letter of D.
 */
#pragma once

#define TL_MMA_ROWS(ROW)                      \
  ROW(16, 8, 8, f32, f16, f16, 2_1_4f)        \
  ROW(16, 8, 8, f16, f16, f16, 2_1_2r)        \
  ROW(16, 8, 16, f32, f16, f16, 4_2_4f)       \
  ROW(16, 8, 16, f16, f16, f16, 4_2_2r)       \
  ROW(16, 8, 8, f32, bf16, bf16, 2_1_4f)      \
  ROW(16, 8, 16, f32, bf16, bf16, 4_2_4f)     \
  ROW(16, 8, 4, f32, tf32, tf32, 2_1_4f)      \
  ROW(16, 8, 8, f32, tf32, tf32, 4_2_4f)      \
  ROW(8, 8, 4, f64, f64, f64, 1_1_2d)         \
  ROW(8, 8, 16, s32, s8, s8, 1_1_2r)          \
  ROW(8, 8, 16, s32, s8, u8, 1_1_2r)          \
  ROW(8, 8, 16, s32, u8, s8, 1_1_2r)          \
  ROW(8, 8, 16, s32, u8, u8, 1_1_2r)          \
  ROW(16, 8, 16, s32, s8, s8, 2_1_4r)         \
  ROW(16, 8, 16, s32, s8, u8, 2_1_4r)         \
  ROW(16, 8, 16, s32, u8, s8, 2_1_4r)         \
  ROW(16, 8, 16, s32, u8, u8, 2_1_4r)         \
  ROW(16, 8, 32, s32, s8, s8, 4_2_4r)         \
  ROW(16, 8, 32, s32, s8, u8, 4_2_4r)         \
  ROW(16, 8, 32, s32, u8, s8, 4_2_4r)         \
  ROW(16, 8, 32, s32, u8, u8, 4_2_4r)         \
  ROW(8, 8, 32, s32, s4, s4, 1_1_2r)          \
  ROW(8, 8, 32, s32, s4, u4, 1_1_2r)          \
  ROW(8, 8, 32, s32, u4, s4, 1_1_2r)          \
  ROW(8, 8, 32, s32, u4, u4, 1_1_2r)          \
  ROW(16, 8, 32, s32, s4, s4, 2_1_4r)         \
  ROW(16, 8, 32, s32, s4, u4, 2_1_4r)         \
  ROW(16, 8, 32, s32, u4, s4, 2_1_4r)         \
  ROW(16, 8, 32, s32, u4, u4, 2_1_4r)         \
  ROW(16, 8, 64, s32, s4, s4, 4_2_4r)         \
  ROW(16, 8, 64, s32, s4, u4, 4_2_4r)         \
  ROW(16, 8, 64, s32, u4, s4, 4_2_4r)         \
  ROW(16, 8, 64, s32, u4, u4, 4_2_4r)         \
  ROW(16, 8, 32, f32, e4m3, e4m3, 4_2_4f)     \
  ROW(16, 8, 32, f32, e4m3, e5m2, 4_2_4f)     \
  ROW(16, 8, 32, f32, e5m2, e4m3, 4_2_4f)     \
  ROW(16, 8, 32, f32, e5m2, e5m2, 4_2_4f)
