/* Helpers of generated kernels: the calling convention, floor division, bits of floats. */
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct { int32_t type_index; uint32_t padding; int64_t value; } tl_any;

static inline int32_t tl_floordiv32(int32_t a, int32_t b) {
  int32_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t tl_floordiv64(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int32_t tl_floormod32(int32_t a, int32_t b) {
  int32_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static inline int64_t tl_floormod64(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
#define TL_MIN_MAX(name, type) \
  static inline type tl_min_##name(type a, type b) { return a < b ? a : b; } \
  static inline type tl_max_##name(type a, type b) { return a > b ? a : b; }
TL_MIN_MAX(int8, int8_t) TL_MIN_MAX(int16, int16_t) TL_MIN_MAX(int32, int32_t) TL_MIN_MAX(int64, int64_t)
TL_MIN_MAX(uint8, uint8_t) TL_MIN_MAX(uint16, uint16_t) TL_MIN_MAX(uint32, uint32_t) TL_MIN_MAX(uint64, uint64_t)
TL_MIN_MAX(bool, uint8_t) TL_MIN_MAX(float32, float) TL_MIN_MAX(float64, double)
static inline int tl_is_null(const void* p) { return p == 0; }
static inline uint32_t tl_bits_float_to_u32(float x) { uint32_t y; memcpy(&y, &x, 4); return y; }
static inline float tl_bits_u32_to_float(uint32_t x) { float y; memcpy(&y, &x, 4); return y; }
static inline uint64_t tl_bits_double_to_u64(double x) { uint64_t y; memcpy(&y, &x, 8); return y; }
static inline double tl_bits_u64_to_double(uint64_t x) { double y; memcpy(&y, &x, 8); return y; }
static inline uint16_t tl_bits_half_to_u16(_Float16 x) { uint16_t y; memcpy(&y, &x, 2); return y; }
static inline _Float16 tl_bits_u16_to_half(uint16_t x) { _Float16 y; memcpy(&y, &x, 2); return y; }
#define TL_ATOMIC_FETCH(name, type, kind) \
  static inline type tl_atomic_##kind##_##name(type* p, type v) { \
    return __atomic_fetch_##kind(p, v, __ATOMIC_RELAXED); \
  }
#define TL_ATOMIC_LOOP(name, type, kind, update) \
  static inline type tl_atomic_##kind##_##name(type* p, type v) { \
    type old, next; \
    __atomic_load(p, &old, __ATOMIC_RELAXED); \
    do { \
      next = update; \
    } while (!__atomic_compare_exchange(p, &old, &next, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
    return old; \
  }
#define TL_ATOMIC_INT(name, type) \
  TL_ATOMIC_FETCH(name, type, add) TL_ATOMIC_FETCH(name, type, or) \
  TL_ATOMIC_LOOP(name, type, max, old < v ? v : old) TL_ATOMIC_LOOP(name, type, min, v < old ? v : old)
TL_ATOMIC_INT(int8, int8_t) TL_ATOMIC_INT(int16, int16_t) TL_ATOMIC_INT(int32, int32_t) TL_ATOMIC_INT(int64, int64_t)
TL_ATOMIC_INT(uint8, uint8_t) TL_ATOMIC_INT(uint16, uint16_t) TL_ATOMIC_INT(uint32, uint32_t) TL_ATOMIC_INT(uint64, uint64_t)
TL_ATOMIC_LOOP(float32, float, add, old + v) TL_ATOMIC_LOOP(float64, double, add, old + v)
