"""The wrappers of instructions compile for the device, each for the oldest chip it is for."""

from __future__ import annotations

import pytest

from tilelang.cuda.compile import compile_source
from tilelang.cuda.intrinsics import LDMATRIX_ROWS, MMA_ROWS

MMA = """
extern "C" __global__ void k_{name}(unsigned* g) {{
  alignas(8) unsigned a[{a}], b[{b}], c[{c}];
  for (int i = 0; i < {a}; ++i) a[i] = g[threadIdx.x + i];
  for (int i = 0; i < {b}; ++i) b[i] = g[threadIdx.x + 50 + i];
  for (int i = 0; i < {c}; ++i) c[i] = g[threadIdx.x + 90 + i];
  tl::mma_{name}(c, a, b);
  for (int i = 0; i < {c}; ++i) g[threadIdx.x + 90 + i] = c[i];
}}
"""
MATRIX = """
extern "C" __global__ void k_{index}(unsigned* g) {{
  __shared__ alignas(16) unsigned tile[128];
  unsigned registers[4] = {{g[0], g[1], g[2], g[3]}};
  tl::{name}({arguments});
  g[threadIdx.x] = tile[threadIdx.x] + registers[0] + registers[1] + registers[2] + registers[3];
}}
"""
COPIES = """
#include <tl/cp_async.h>
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ alignas(16) float tile[256];
  tl::cp_async<16>(tile + 4 * threadIdx.x, in);
  tl::cp_async<8>(tile + 128 + 2 * threadIdx.x, in, threadIdx.x > 3);
  tl::cp_async<4>(tile + 200 + threadIdx.x, in, threadIdx.x > 4);
  tl::cp_async_commit();
  tl::cp_async_wait<1>();
  tl::cp_async_wait<0>();
  out[threadIdx.x] = tile[threadIdx.x];
}
"""
COLLECTIVES = """
#include <tl/sync.h>
#include <tl/warp.h>
extern "C" __global__ void k(float* f, unsigned* u, double* d, unsigned char* b) {
  tl::sync_threads();
  tl::sync_threads(1, 64);
  tl::named_barrier_arrive(2, 64);
  tl::sync_warp();
  tl::sync_grid();
  tl::sync_global();
  tl::fence_block();
  tl::fence_device();
  tl::fence_system();
  f[0] = tl::warp_reduce_sum(f[1]) + tl::warp_reduce_max(f[2]) + tl::warp_reduce_min(f[3]);
  u[0] = tl::warp_reduce_bitand(u[1]) + tl::warp_reduce_bitor(u[2]);
  u[1] = tl::match_any_sync(f[4]) + tl::match_all_sync(d[1]);
  u[2] = tl::any_sync(f[5] > 0) + tl::all_sync(f[6] > 0) + tl::ballot_sync(f[7] > 0);
  u[3] = tl::activemask() + tl::shuffle_elect(64) + tl::shuffle_elect(0);
  u[4] = tl::get_lane_idx() + tl::get_warp_idx() + tl::get_warp_group_idx();
  u[5] = tl::syncthreads_count(f[8] > 0) + tl::syncthreads_and(f[9] > 0);
  d[0] = tl::shfl_sync(d[1], 3, 16) + tl::shfl_xor(d[2], 1);
  b[0] = tl::shfl_up(b[1], 1) + tl::shfl_down(b[2], 2, 8);
}
"""


@pytest.mark.parametrize("arch", sorted({row.min_arch for row in MMA_ROWS}))
def test_matrix_instructions_compile(arch):
    rows = [row for row in MMA_ROWS if row.min_arch == arch]
    kernels = [
        MMA.format(name=row.name, **dict(zip("abc", row.registers, strict=True))) for row in rows
    ]
    binary = compile_source("#include <tl/mma.h>\n" + "".join(kernels), f"sm_{arch}")
    assert set(binary.resources) == {f"k_{row.name}" for row in rows}


@pytest.mark.parametrize("arch", sorted({row.min_arch for row in LDMATRIX_ROWS}))
def test_matrix_moves_compile(arch):
    kernels = [
        MATRIX.format(
            index=index,
            name=row.name,
            arguments="&tile[4 * threadIdx.x], registers"
            if row.store
            else "registers, &tile[4 * threadIdx.x]",
        )
        for index, row in enumerate(LDMATRIX_ROWS)
        if row.min_arch == arch
    ]
    binary = compile_source("#include <tl/ldmatrix.h>\n" + "".join(kernels), f"sm_{arch}")
    assert len(binary.resources) == len(kernels)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_copies_compile(arch):
    assert compile_source(COPIES, arch).code[:4] == b"\x7fELF"


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
def test_collectives_compile(arch):
    assert compile_source(COLLECTIVES, arch).code[:4] == b"\x7fELF"
