/*!
 * \file fp_environment.h
 * \brief The floating-point control word, copied to helpers so that all threads compute alike.
 *
 * `torch.set_flush_denormal` and rounding modes are per thread; without the copy a result could
 * depend on which thread ran a block.
 */
#ifndef TILELANG_CPU_RUNTIME_FP_ENVIRONMENT_H_
#define TILELANG_CPU_RUNTIME_FP_ENVIRONMENT_H_

#include <cstdint>

namespace tilelang {
namespace cpu {

#if defined(__x86_64__)
using FpControl = uint32_t;
inline FpControl GetFpControl() { return __builtin_ia32_stmxcsr(); }
inline void SetFpControl(FpControl value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
using FpControl = uint64_t;
inline FpControl GetFpControl() {
  FpControl value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
inline void SetFpControl(FpControl value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
using FpControl = uint32_t;
inline FpControl GetFpControl() { return 0; }
inline void SetFpControl(FpControl) {}
#endif

}  // namespace cpu
}  // namespace tilelang
#endif  // TILELANG_CPU_RUNTIME_FP_ENVIRONMENT_H_
