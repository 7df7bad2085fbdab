/*!
 * \file builtins.h
 * \brief Functions that CUDA C++ has without any header.
 */
#pragma once

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "runtime.h"

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define TL_EMU_VECTORS(name, type, align2, align4)                    \
  struct name##1 { type x; };                                         \
  struct alignas(align2) name##2 { type x, y; };                      \
  struct name##3 { type x, y, z; };                                   \
  struct alignas(align4) name##4 { type x, y, z, w; };                \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }    \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
TL_EMU_VECTORS(char, signed char, 2, 4)
TL_EMU_VECTORS(uchar, unsigned char, 2, 4)
TL_EMU_VECTORS(short, short, 4, 8)
TL_EMU_VECTORS(ushort, unsigned short, 4, 8)
TL_EMU_VECTORS(int, int, 8, 16)
TL_EMU_VECTORS(uint, unsigned, 8, 16)
TL_EMU_VECTORS(float, float, 8, 16)
TL_EMU_VECTORS(longlong, long long, 16, 16)
TL_EMU_VECTORS(ulonglong, unsigned long long, 16, 16)
TL_EMU_VECTORS(double, double, 16, 16)
#undef TL_EMU_VECTORS

namespace tl_emu {
template <class To, class From>
inline To BitCast(From value) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}
}  // namespace tl_emu

inline unsigned __float_as_uint(float x) { return tl_emu::BitCast<unsigned>(x); }
inline int __float_as_int(float x) { return tl_emu::BitCast<int>(x); }
inline float __uint_as_float(unsigned x) { return tl_emu::BitCast<float>(x); }
inline float __int_as_float(int x) { return tl_emu::BitCast<float>(x); }
inline long long __double_as_longlong(double x) { return tl_emu::BitCast<long long>(x); }
inline double __longlong_as_double(long long x) { return tl_emu::BitCast<double>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1u) << (31 - i);
  return result;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned nibble = selector >> (4 * i) & 15u;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (nibble & 7u))) & 255u;
    if (nibble & 8u) byte = byte & 128u ? 255u : 0u;
    result |= byte << (8 * i);
  }
  return result;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
  }
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> (8 * i) & 255u) * (b >> (8 * i) & 255u);
  return c;
}

template <class T>
inline T __ldg(const T* address) { return *address; }

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __frsqrt_rn(float a) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)));
}
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline double __drcp_rn(double a) { return 1.0 / a; }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::exp2(x * 3.32192809488736f); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float rsqrtf(float x) { return __frsqrt_rn(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float exp10f(float x) { return static_cast<float>(std::pow(10.0, static_cast<double>(x))); }

// CUDA's min and max of built-in types; the common type is that of the usual conversions.
template <class A, class B>
inline auto min(A a, B b) -> decltype(a + b) {
  using T = decltype(a + b);
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);
}
template <class A, class B>
inline auto max(A a, B b) -> decltype(a + b) {
  using T = decltype(a + b);
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

using std::isfinite;
using std::isinf;
using std::isnan;

inline void __syncthreads(int site = __builtin_LINE()) {
  tl_emu::tl_emu_barrier(0, 0, true, tl_emu::Vote::kNone, false, site);
}
inline int __syncthreads_count(int predicate, int site = __builtin_LINE()) {
  return tl_emu::tl_emu_barrier(0, 0, true, tl_emu::Vote::kCount, predicate != 0, site);
}
inline int __syncthreads_and(int predicate, int site = __builtin_LINE()) {
  return tl_emu::tl_emu_barrier(0, 0, true, tl_emu::Vote::kAnd, predicate != 0, site);
}
inline int __syncthreads_or(int predicate, int site = __builtin_LINE()) {
  return tl_emu::tl_emu_barrier(0, 0, true, tl_emu::Vote::kOr, predicate != 0, site);
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { tl_emu::tl_emu_sync_warp(mask); }
inline unsigned __activemask() { return tl_emu::tl_emu_active_mask(); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return tl_emu::tl_emu_ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
  return tl_emu::tl_emu_ballot(mask, predicate != 0) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return tl_emu::tl_emu_ballot(mask, predicate == 0) == 0;
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value) {
  return tl_emu::tl_emu_match(mask, &value, sizeof(T), false);
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* predicate) {
  unsigned found = tl_emu::tl_emu_match(mask, &value, sizeof(T), true);
  *predicate = found != 0;
  return found;
}

inline void __threadfence_block() { tl_emu::tl_emu_fence(); }
inline void __threadfence() { tl_emu::tl_emu_fence(); }
inline void __threadfence_system() { tl_emu::tl_emu_fence(); }
inline void __nanosleep(unsigned) {}
inline long long clock64() { return static_cast<long long>(tl_emu::tl_emu_clock()); }
inline int clock() { return static_cast<int>(tl_emu::tl_emu_clock()); }
[[noreturn]] inline void __trap() { tl_emu::tl_emu_trap("the kernel executed __trap()"); }

#undef assert
#define assert(condition) \
  ((condition) ? void(0) : tl_emu::tl_emu_trap("assertion failed: " #condition))
#define __builtin_assume(condition) void(0)
