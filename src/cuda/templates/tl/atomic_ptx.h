// Atomic instructions. The emulator has a file of this name in plain C++.
#pragma once
#include <tl/types.h>

namespace tl {

enum memory_order { relaxed, consume, acquire, release, acq_rel, seq_cst };

namespace ptx {

TL_DEVICE void fence() { __threadfence(); }

// Integers of the width of an instruction.
template <class T>
struct is_integer_word {
  static constexpr bool value = is_same<T, int>::value || is_same<T, unsigned>::value ||
                                is_same<T, int64_t>::value || is_same<T, uint64_t>::value;
};
template <class T>
struct has_add {
  static constexpr bool value = is_integer_word<T>::value || is_same<T, float>::value ||
                                is_same<T, double>::value || is_same<T, half>::value ||
#if __CUDA_ARCH__ >= 900
                                is_same<T, bfloat16>::value ||
#endif
                                false;
};

template <class T>
TL_DEVICE T add(T* p, T x) {
  if constexpr (sizeof(T) == 8 && is_integer_word<T>::value) {
    return T(atomicAdd(reinterpret_cast<unsigned long long*>(p), (unsigned long long)x));
  } else if constexpr (is_same<T, half>::value) {
    half old;
    asm volatile("atom.add.noftz.f16 %0, [%1], %2;"
                 : "=h"(old.bits) : "l"(p), "h"(x.bits) : "memory");
    return old;
#if __CUDA_ARCH__ >= 900
  } else if constexpr (is_same<T, bfloat16>::value) {
    bfloat16 old;
    asm volatile("atom.add.noftz.bf16 %0, [%1], %2;"
                 : "=h"(old.bits) : "l"(p), "h"(x.bits) : "memory");
    return old;
#endif
  } else {
    return atomicAdd(p, x);
  }
}

#define TL_WORD(NAME, FUNCTION)                                                           \
  TL_DEVICE int NAME(int* p, int x) { return FUNCTION(p, x); }                            \
  TL_DEVICE unsigned NAME(unsigned* p, unsigned x) { return FUNCTION(p, x); }             \
  TL_DEVICE int64_t NAME(int64_t* p, int64_t x) {                                         \
    return FUNCTION(reinterpret_cast<long long*>(p), (long long)x);                       \
  }                                                                                       \
  TL_DEVICE uint64_t NAME(uint64_t* p, uint64_t x) {                                      \
    return FUNCTION(reinterpret_cast<unsigned long long*>(p), (unsigned long long)x);     \
  }
TL_WORD(min, atomicMin)
TL_WORD(max, atomicMax)
#undef TL_WORD

#define TL_BITS(NAME, FUNCTION)                                                            \
  template <class T>                                                                       \
  TL_DEVICE T NAME(T* p, T x) {                                                            \
    if constexpr (sizeof(T) == 8) {                                                        \
      return T(FUNCTION(reinterpret_cast<unsigned long long*>(p), (unsigned long long)x)); \
    } else {                                                                               \
      return T(FUNCTION(reinterpret_cast<unsigned*>(p), unsigned(x)));                     \
    }                                                                                      \
  }
TL_BITS(bit_and, atomicAnd)
TL_BITS(bit_or, atomicOr)
TL_BITS(bit_xor, atomicXor)
#undef TL_BITS

template <class W, class T, class F>
TL_DEVICE T update_word(T* p, F combine) {
  W* const word = reinterpret_cast<W*>(p);
  W old = *static_cast<volatile W*>(word);
  while (true) {
    const W next = bit_cast<W>(combine(bit_cast<T>(old)));
    if (next == old) return bit_cast<T>(old);
    const W found = atomicCAS(word, old, next);
    if (found == old) return bit_cast<T>(old);
    old = found;
  }
}

// A byte is replaced with the word around it.
template <class T, class F>
TL_DEVICE T update_byte(T* p, F combine) {
  const int shift = 8 * int(reinterpret_cast<uintptr_t>(p) & 3);
  unsigned* const word = reinterpret_cast<unsigned*>(reinterpret_cast<uintptr_t>(p) & ~uintptr_t(3));
  unsigned old = *static_cast<volatile unsigned*>(word);
  while (true) {
    const uint8_t byte = uint8_t(old >> shift);
    const uint8_t next = bit_cast<uint8_t>(combine(bit_cast<T>(byte)));
    const unsigned found =
        atomicCAS(word, old, (old & ~(0xffu << shift)) | (unsigned(next) << shift));
    if (found == old) return bit_cast<T>(byte);
    old = found;
  }
}

// Replaces *p by combine(*p).
template <class T, class F>
TL_DEVICE T update(T* p, F combine, memory_order) {
  if constexpr (sizeof(T) == 8) return update_word<unsigned long long>(p, combine);
  else if constexpr (sizeof(T) == 4) return update_word<unsigned>(p, combine);
  else if constexpr (sizeof(T) == 2) return update_word<unsigned short>(p, combine);
  else return update_byte(p, combine);
}

template <int bytes>
struct carrier;
template <> struct carrier<1> { using type = uint8_t; };
template <> struct carrier<2> { using type = uint16_t; };
template <> struct carrier<4> { using type = unsigned; };
template <> struct carrier<8> { using type = unsigned long long; };

template <class T>
TL_DEVICE T load(const T* p, memory_order) {
  using W = typename carrier<sizeof(T)>::type;
  return bit_cast<T>(W(*reinterpret_cast<const volatile W*>(p)));
}
template <class T>
TL_DEVICE void store(T* p, T x, memory_order) {
  using W = typename carrier<sizeof(T)>::type;
  *reinterpret_cast<volatile W*>(p) = bit_cast<W>(x);
}

template <class T, int n>
struct has_add_vec {
  static constexpr bool value = n % 2 == 0 && (is_same<T, half>::value
#if __CUDA_ARCH__ >= 900
                                || is_same<T, bfloat16>::value || is_same<T, float>::value
#endif
                               );
};

template <int n>
TL_DEVICE void add_vec(half* dst, const half* src) {
#pragma unroll
  for (int i = 0; i < n; i += 2) {
    const unsigned pair = src[i].bits | unsigned(src[i + 1].bits) << 16;
    asm volatile("red.add.noftz.f16x2 [%0], %1;" : : "l"(dst + i), "r"(pair) : "memory");
  }
}
#if __CUDA_ARCH__ >= 900
template <int n>
TL_DEVICE void add_vec(bfloat16* dst, const bfloat16* src) {
#pragma unroll
  for (int i = 0; i < n; i += 2) {
    const unsigned pair = src[i].bits | unsigned(src[i + 1].bits) << 16;
    asm volatile("red.add.noftz.bf16x2 [%0], %1;" : : "l"(dst + i), "r"(pair) : "memory");
  }
}
template <int n>
TL_DEVICE void add_vec(float* dst, const float* src) {
  const size_t place = __cvta_generic_to_global(dst);
  if constexpr (n % 4 == 0) {
#pragma unroll
    for (int i = 0; i < n; i += 4) {
      asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                   : : "l"(place + 4 * i), "f"(src[i]), "f"(src[i + 1]), "f"(src[i + 2]),
                   "f"(src[i + 3]) : "memory");
    }
  } else {
#pragma unroll
    for (int i = 0; i < n; i += 2) {
      asm volatile("red.global.add.v2.f32 [%0], {%1, %2};"
                   : : "l"(place + 4 * i), "f"(src[i]), "f"(src[i + 1]) : "memory");
    }
  }
}
#endif

}  // namespace ptx
}  // namespace tl
