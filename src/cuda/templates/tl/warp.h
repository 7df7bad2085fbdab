/*!
 * \file warp.h
 * \brief Shuffles and votes of a warp.
 *
 * Every lane named in `mask` that has not exited calls with the same mask. `width`, a power of two,
 * splits the warp into groups that exchange apart; a lane out of reach gets its own value back.
 */
#pragma once

namespace tl {
namespace warp_detail {

template <int bytes>
struct Words;
template <>
struct Words<1> { using type = unsigned char; };
template <>
struct Words<2> { using type = unsigned short; };
template <>
struct Words<4> { using type = unsigned; };
template <>
struct Words<8> { using type = unsigned long long; };

/*! \brief The type that shuffles take: at least 32 bits. */
inline __device__ unsigned widen(unsigned char x) { return x; }
inline __device__ unsigned widen(unsigned short x) { return x; }
inline __device__ unsigned widen(unsigned x) { return x; }
inline __device__ unsigned long long widen(unsigned long long x) { return x; }

/*! \brief Any 1, 2, 4 or 8-byte value as the integer of its size. */
template <class T>
union Bits {
  T value;
  typename Words<sizeof(T)>::type word;
};

/*! \brief The value whose low bits are `word`. */
template <class T, class Word>
inline __device__ T value_of(Word word) {
  Bits<T> bits;
  bits.word = static_cast<typename Words<sizeof(T)>::type>(word);
  return bits.value;
}

/*! \brief The bits of a value, as shuffles take them. */
template <class T>
inline __device__ auto word_of(T value) {
  return widen(Bits<T>{value}.word);
}

}  // namespace warp_detail

template <class T>
inline __device__ T shfl_sync(T value, int lane, int width = 32, unsigned mask = 0xffffffffu) {
  return warp_detail::value_of<T>(__shfl_sync(mask, warp_detail::word_of(value), lane, width));
}

template <class T>
inline __device__ T shfl_xor(T value, int bits, int width = 32, unsigned mask = 0xffffffffu) {
  return warp_detail::value_of<T>(__shfl_xor_sync(mask, warp_detail::word_of(value), bits, width));
}

template <class T>
inline __device__ T shfl_up(T value, int delta, int width = 32, unsigned mask = 0xffffffffu) {
  return warp_detail::value_of<T>(__shfl_up_sync(mask, warp_detail::word_of(value), delta, width));
}

template <class T>
inline __device__ T shfl_down(T value, int delta, int width = 32, unsigned mask = 0xffffffffu) {
  return warp_detail::value_of<T>(__shfl_down_sync(mask, warp_detail::word_of(value), delta, width));
}

inline __device__ int any_sync(bool predicate, unsigned mask = 0xffffffffu) {
  return __any_sync(mask, predicate);
}
inline __device__ int all_sync(bool predicate, unsigned mask = 0xffffffffu) {
  return __all_sync(mask, predicate);
}
inline __device__ unsigned long long ballot_sync(bool predicate, unsigned mask = 0xffffffffu) {
  return __ballot_sync(mask, predicate);
}
inline __device__ unsigned long long activemask() { return __activemask(); }

/*! \brief The lanes of `mask` with the same bits as this lane's value. */
template <class T>
inline __device__ unsigned match_any_sync(T value, unsigned mask = 0xffffffffu) {
  return __match_any_sync(mask, warp_detail::word_of(value));
}

/*! \brief `mask` if all its lanes have the same bits, else 0. */
template <class T>
inline __device__ unsigned match_all_sync(T value, unsigned mask = 0xffffffffu) {
  int all;
  return __match_all_sync(mask, warp_detail::word_of(value), &all);
}

}  // namespace tl

#include <tl/warp_common.h>
