// Output and checks from inside a kernel.
#pragma once
#include <tl/convert.h>
#include <tl/minifloat.h>
#include <tl/types.h>

namespace tl {

// One overload a type: its name, the format, and what printf takes for it.
#define TL_PRINT(TYPE, NAME, FORMAT, VALUE)                                                       \
  TL_DEVICE void print(const char* message, TYPE x) {                                             \
    printf("msg='%s' BLOCK=(%d, %d, %d), THREAD=(%d, %d, %d): dtype=" NAME " value=" FORMAT "\n", \
           message, int(blockIdx.x), int(blockIdx.y), int(blockIdx.z), int(threadIdx.x),          \
           int(threadIdx.y), int(threadIdx.z), VALUE);                                            \
  }                                                                                               \
  TL_DEVICE void print_element(const char* message, const char* buffer, int64_t index, TYPE x) {  \
    printf("msg='%s' BLOCK=(%d, %d, %d), THREAD=(%d, %d, %d): buffer=%s, index=%lld, dtype=" NAME \
           " value=" FORMAT "\n",                                                                 \
           message, int(blockIdx.x), int(blockIdx.y), int(blockIdx.z), int(threadIdx.x),          \
           int(threadIdx.y), int(threadIdx.z), buffer, (long long)index, VALUE);                  \
  }

TL_PRINT(bool, "bool", "%s", x ? "true" : "false")
TL_PRINT(int8_t, "int8", "%d", int(x))
TL_PRINT(uint8_t, "uint8", "%u", unsigned(x))
TL_PRINT(int16_t, "int16", "%d", int(x))
TL_PRINT(uint16_t, "uint16", "%u", unsigned(x))
TL_PRINT(int, "int32", "%d", x)
TL_PRINT(unsigned, "uint32", "%u", x)
TL_PRINT(int64_t, "int64", "%lld", (long long)x)
TL_PRINT(uint64_t, "uint64", "%llu", (unsigned long long)x)
TL_PRINT(float, "float32", "%f", double(x))
TL_PRINT(double, "float64", "%f", x)
TL_PRINT(half, "float16", "%f", double(float(x)))
TL_PRINT(bfloat16, "bfloat16", "%f", double(float(x)))
TL_PRINT(int4, "int4", "%d", int(x))
TL_PRINT(uint4, "uint4", "%d", int(x))
TL_PRINT(float8_e4m3fn, "float8_e4m3fn", "%f", double(float(x)))
TL_PRINT(float8_e5m2, "float8_e5m2", "%f", double(float(x)))
TL_PRINT(float8_e4m3fnuz, "float8_e4m3fnuz", "%f", double(float(x)))
TL_PRINT(float8_e5m2fnuz, "float8_e5m2fnuz", "%f", double(float(x)))
TL_PRINT(float8_e4m3b11fnuz, "float8_e4m3b11fnuz", "%f", double(float(x)))
TL_PRINT(float8_e3m4, "float8_e3m4", "%f", double(float(x)))
TL_PRINT(float8_e8m0fnu, "float8_e8m0fnu", "%f", double(float(x)))
TL_PRINT(float6_e2m3fn, "float6_e2m3fn", "%f", double(float(x)))
TL_PRINT(float6_e3m2fn, "float6_e3m2fn", "%f", double(float(x)))
TL_PRINT(float4_e2m1fn, "float4_e2m1fn", "%f", double(float(x)))
#undef TL_PRINT

TL_DEVICE void print(const char* message) {
  printf("msg='%s' BLOCK=(%d, %d, %d), THREAD=(%d, %d, %d)\n", message, int(blockIdx.x),
         int(blockIdx.y), int(blockIdx.z), int(threadIdx.x), int(threadIdx.y), int(threadIdx.z));
}

// Stops the kernel, and says where, if the condition does not hold.
TL_DEVICE void device_assert(bool condition, const char* message, const char* place) {
  if (condition) return;
  printf("Device assert failed: %s%s%s BLOCK=(%d, %d, %d), THREAD=(%d, %d, %d)\n", message, place[0] ? " at " : "", place,
         int(blockIdx.x), int(blockIdx.y), int(blockIdx.z), int(threadIdx.x), int(threadIdx.y),
         int(threadIdx.z));
  __trap();
}

}  // namespace tl
