// Random numbers by counter: Philox 4x32 with 10 rounds (Salmon et al., 2011). A state gives the
// same numbers as cuRAND's generator of that name for the same seed, sequence and offset.
#pragma once
#include <tl/math.h>

namespace tl {

// The number of the thread in the grid.
TL_DEVICE uint64_t global_thread() {
  const uint64_t block = blockIdx.x + uint64_t(gridDim.x) * (blockIdx.y + uint64_t(gridDim.y) * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  return block * (blockDim.x * blockDim.y * blockDim.z) + thread;
}

class rng_state {
 public:
  rng_state() = default;

  // Sequences of 2^66 numbers do not overlap; the offset counts numbers.
  TL_DEVICE void start(uint64_t seed, uint64_t sequence, uint64_t offset) {
    key_[0] = unsigned(seed);
    key_[1] = unsigned(seed >> 32);
    counter_[0] = unsigned(offset >> 2);
    counter_[1] = unsigned(offset >> 34);
    counter_[2] = unsigned(sequence);
    counter_[3] = unsigned(sequence >> 32);
    position_ = int(offset & 3);
    spare_ = false;
    fill();
  }

  TL_DEVICE unsigned next() {
    if (position_ == 4) {
      for (int i = 0; i < 4 && ++counter_[i] == 0; ++i) {
      }
      position_ = 0;
      fill();
    }
    const int i = position_++;
    return i == 0 ? output_[0] : i == 1 ? output_[1] : i == 2 ? output_[2] : output_[3];
  }

  // Uniform in (0, 1].
  template <class T>
  TL_DEVICE T uniform() {
    if constexpr (sizeof(T) == 8) {
      const uint64_t low = next(), high = next();
      return T(low ^ (high << 21)) * 0x1p-53 + 0x1p-54;
    } else {
      return T(next()) * 0x1p-32f + 0x1p-33f;
    }
  }

  // Standard normal, by pairs (Box and Muller, 1958).
  template <class T>
  TL_DEVICE T normal() {
    if (spare_) {
      spare_ = false;
      return T(spare_normal_);
    }
    const T u = uniform<T>(), v = uniform<T>() * T(6.283185307179586);
    const T radius = tl::sqrt(T(-2) * tl::log(u));
    spare_ = true;
    spare_normal_ = double(radius * tl::cos(v));
    return radius * tl::sin(v);
  }

 private:
  TL_DEVICE void fill() {
    unsigned c[4] = {counter_[0], counter_[1], counter_[2], counter_[3]};
    unsigned k0 = key_[0], k1 = key_[1];
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const uint64_t p = uint64_t(0xd2511f53u) * c[0], q = uint64_t(0xcd9e8d57u) * c[2];
      c[0] = unsigned(q >> 32) ^ c[1] ^ k0;
      c[1] = unsigned(q);
      c[2] = unsigned(p >> 32) ^ c[3] ^ k1;
      c[3] = unsigned(p);
      k0 += 0x9e3779b9u;
      k1 += 0xbb67ae85u;
    }
    for (int i = 0; i < 4; ++i) output_[i] = c[i];
  }

  unsigned key_[2];
  unsigned counter_[4];
  unsigned output_[4];
  int position_;
  bool spare_;
  double spare_normal_;
};

}  // namespace tl
