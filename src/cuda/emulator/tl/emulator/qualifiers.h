/*!
 * \file qualifiers.h
 * \brief CUDA's qualifiers and built-in variables for a host compiler.
 *
 * `extern __shared__ T name[]` cannot be told from `__shared__ T name[n]` by a macro, so the driver
 * replaces its two first words by `extern __dynamic_shared__` and makes `name` an alias of the
 * arena when it links.
 */
#pragma once

#include "runtime.h"

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __shared__ static __attribute__((section("tl_shared")))
#define __dynamic_shared__
// Threads that share a tensor run in one host thread: what one writes, another reads after a
// barrier, so no pointer is unaliased for the host compiler.
#define __restrict__
#define __restrict

#define threadIdx ::tl_emu::tl_emu_thread_idx
#define blockIdx ::tl_emu::tl_emu_block_idx
#define blockDim ::tl_emu::tl_emu_block_dim
#define gridDim ::tl_emu::tl_emu_grid_dim
#define warpSize 32
