/*!
 * \file register_budget.h
 * \brief Registers that move between the warp groups of a block.
 *
 * The instruction belongs to the architectures with an `a` from sm_90 on; elsewhere the request is a
 * hint that nothing acts on.
 */
#pragma once

namespace tl {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_SPECIFIC__)
#define TL_MOVE_REGISTERS(direction, count) \
  asm volatile("setmaxnreg." direction ".sync.aligned.u32 %0;" ::"n"(count))
#else
#define TL_MOVE_REGISTERS(direction, count)
#endif

/*! \brief Wait until each thread may use `count` registers. */
template <int count>
inline __device__ void inc_max_nreg() {
  TL_MOVE_REGISTERS("inc", count);
}

/*! \brief Give back the registers of each thread above `count`. */
template <int count>
inline __device__ void dec_max_nreg() {
  TL_MOVE_REGISTERS("dec", count);
}

#undef TL_MOVE_REGISTERS

}  // namespace tl
