/*!
 * \file warp.h
 * \brief Shuffles and votes, emulated; the twin of templates/tl/warp.h.
 */
#pragma once

#include "emulator/builtins.h"

namespace tl {
namespace warp_detail {

inline int lane() { return static_cast<int>(tl_emu::tl_emu_linear_thread % 32u); }

template <class T>
inline T exchange(T value, int source, bool reachable, unsigned mask) {
  tl_emu::tl_emu_shuffle(mask, &value, sizeof(T), reachable ? source : lane());
  return value;
}

}  // namespace warp_detail

template <class T>
inline T shfl_sync(T value, int lane, int width = 32, unsigned mask = 0xffffffffu) {
  const int first = warp_detail::lane() & ~(width - 1);
  return warp_detail::exchange(value, first + (lane & (width - 1)), true, mask);
}

template <class T>
inline T shfl_xor(T value, int bits, int width = 32, unsigned mask = 0xffffffffu) {
  const int last = warp_detail::lane() | (width - 1);
  const int source = warp_detail::lane() ^ bits;
  return warp_detail::exchange(value, source, source >= 0 && source <= last, mask);
}

template <class T>
inline T shfl_up(T value, int delta, int width = 32, unsigned mask = 0xffffffffu) {
  const int first = warp_detail::lane() & ~(width - 1);
  const int source = warp_detail::lane() - delta;
  return warp_detail::exchange(value, source, source >= first, mask);
}

template <class T>
inline T shfl_down(T value, int delta, int width = 32, unsigned mask = 0xffffffffu) {
  const int last = warp_detail::lane() | (width - 1);
  const int source = warp_detail::lane() + delta;
  return warp_detail::exchange(value, source, source <= last, mask);
}

inline int any_sync(bool predicate, unsigned mask = 0xffffffffu) {
  return __any_sync(mask, predicate);
}
inline int all_sync(bool predicate, unsigned mask = 0xffffffffu) {
  return __all_sync(mask, predicate);
}
inline unsigned long long ballot_sync(bool predicate, unsigned mask = 0xffffffffu) {
  return __ballot_sync(mask, predicate);
}
inline unsigned long long activemask() { return __activemask(); }

template <class T>
inline unsigned match_any_sync(T value, unsigned mask = 0xffffffffu) {
  return tl_emu::tl_emu_match(mask, &value, sizeof(T), false);
}

template <class T>
inline unsigned match_all_sync(T value, unsigned mask = 0xffffffffu) {
  return tl_emu::tl_emu_match(mask, &value, sizeof(T), true);
}

}  // namespace tl

template <class T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return tl::shfl_sync(value, lane, width, mask);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  return tl::shfl_xor(value, bits, width, mask);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return tl::shfl_up(value, static_cast<int>(delta), width, mask);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return tl::shfl_down(value, static_cast<int>(delta), width, mask);
}

#include <tl/warp_common.h>
