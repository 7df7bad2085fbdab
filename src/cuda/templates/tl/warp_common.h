/*!
 * \file warp_common.h
 * \brief What is built on shuffles and votes: reductions of a warp, thread indices.
 */
#pragma once

namespace tl {

/*! \brief Number of the calling thread in its block, x fastest. */
inline __device__ int linear_thread() {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

inline __device__ int get_lane_idx(int warp_size = 32) { return linear_thread() % warp_size; }
inline __device__ int get_warp_idx(int warp_size = 32) { return linear_thread() / warp_size; }
inline __device__ int get_warp_idx_sync(int warp_size = 32) { return get_warp_idx(warp_size); }
inline __device__ int get_warp_group_idx(int warp_size = 32, int warps_per_group = 4) {
  return linear_thread() / (warp_size * warps_per_group);
}


namespace warp_detail {

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const { return static_cast<T>(a + b); }
};
// The number wins over NaN.
struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const { return b > a || a != a ? b : a; }
};
struct Smaller {
  template <class T>
  __device__ T operator()(T a, T b) const { return b < a || a != a ? b : a; }
};
struct BitAnd {
  template <class T>
  __device__ T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
struct BitOr {
  template <class T>
  __device__ T operator()(T a, T b) const { return static_cast<T>(a | b); }
};

/*! \brief Combine the values of the active lanes; all of them get the result. */
template <class T, class Combine>
inline __device__ T reduce(T value, Combine combine) {
  const unsigned mask = static_cast<unsigned>(activemask());
  if (mask == 0xffffffffu) {
#pragma unroll
    for (int bits = 16; bits > 0; bits /= 2) {
      value = combine(value, shfl_xor(value, bits, 32, mask));
    }
    return value;
  }
  // Some lanes are missing: collect the others in the order of their lanes.
  T result = shfl_sync(value, __ffs(static_cast<int>(mask)) - 1, 32, mask);
  for (unsigned rest = mask & (mask - 1); rest != 0; rest &= rest - 1) {
    result = combine(result, shfl_sync(value, __ffs(static_cast<int>(rest)) - 1, 32, mask));
  }
  return result;
}

}  // namespace warp_detail

/*!
 * \brief True in the first active lane of each `extent` threads.
 *
 * Of a group of several warps the first one takes part; 0 is the whole block.
 */
inline __device__ bool shuffle_elect(int extent) {
  const int thread = linear_thread();
  const int lane = thread % 32;
  unsigned active = static_cast<unsigned>(activemask());
  if (extent == 0 || extent > 32) {
    const int warp = thread / 32;
    if (extent == 0 ? warp != 0 : warp % (extent / 32) != 0) return false;
  } else if (extent < 32) {
    active &= ((1u << extent) - 1u) << (lane / extent * extent);
  }
  return lane == __ffs(static_cast<int>(active)) - 1;
}

template <class T>
inline __device__ T warp_reduce_sum(T value) {
  return warp_detail::reduce(value, warp_detail::Sum());
}
template <class T>
inline __device__ T warp_reduce_max(T value) {
  return warp_detail::reduce(value, warp_detail::Larger());
}
template <class T>
inline __device__ T warp_reduce_min(T value) {
  return warp_detail::reduce(value, warp_detail::Smaller());
}
template <class T>
inline __device__ T warp_reduce_bitand(T value) {
  return warp_detail::reduce(value, warp_detail::BitAnd());
}
template <class T>
inline __device__ T warp_reduce_bitor(T value) {
  return warp_detail::reduce(value, warp_detail::BitOr());
}

}  // namespace tl
