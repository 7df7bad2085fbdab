/*!
 * \file dependent_launch.h
 * \brief Kernels of a stream that overlap: programmatic dependent launch (sm_90).
 */
#pragma once

namespace tl {

/*! \brief Once all blocks have said so or ended, the next kernel of the stream may start. */
inline __device__ void pdl_trigger() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/*! \brief Wait until the kernel ahead in the stream has ended and what it wrote is visible. */
inline __device__ void pdl_sync() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

}  // namespace tl
