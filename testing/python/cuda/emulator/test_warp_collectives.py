"""Shuffles, votes, matches and matrix loads, with divergent and missing lanes."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import run

from tilelang.cuda.intrinsics import LDMATRIX_ROWS
from tilelang.errors import EmulatorError

LANES = np.arange(32)


def each_lane(expression, dtype="int", block=32, out=np.int32, before="", checks=()):
    """The value of an expression in every thread; its input ``v`` is 3 * lane + 1."""
    source = f"""
    #include <tl/warp.h>
    #include <tl/sync.h>
    extern "C" __global__ void kernel({dtype}* out) {{
      int lane = threadIdx.x;
      {dtype} v = ({dtype})(3 * lane + 1);
      {before}
      out[lane] = {expression};
    }}
    """
    result = np.zeros(block, out)
    run(source, result, block=block, checks=checks)
    return result


@pytest.mark.parametrize(
    ("expression", "source"),
    [
        ("tl::shfl_sync(v, 5)", np.full(32, 5)),
        ("tl::shfl_sync(v, 37)", np.full(32, 5)),
        ("tl::shfl_sync(v, lane + 1, 8)", LANES // 8 * 8 + (LANES + 1) % 8),
        ("tl::shfl_xor(v, 16)", LANES ^ 16),
        ("tl::shfl_xor(v, 8, 8)", np.where((LANES ^ 8) < LANES // 8 * 8 + 8, LANES ^ 8, LANES)),
        ("tl::shfl_up(v, 3)", np.where(LANES >= 3, LANES - 3, LANES)),
        ("tl::shfl_down(v, 2, 16)", np.where(LANES % 16 < 14, LANES + 2, LANES)),
        ("__shfl_xor_sync(0xffffffffu, v, 1)", LANES ^ 1),
    ],
)
@pytest.mark.parametrize(
    ("dtype", "out"),
    [("int", np.int32), ("double", np.float64), ("unsigned char", np.uint8), ("short", np.int16)],
)
def test_shuffles(expression, source, dtype, out):
    assert (each_lane(expression, dtype, out=out) == 3 * source + 1).all()


def test_votes_and_matches():
    assert (each_lane("tl::any_sync(lane == 7) + 2 * tl::all_sync(lane < 32)") == 3).all()
    ballot = each_lane("(unsigned)tl::ballot_sync(lane % 3 == 0)", "unsigned", out=np.uint32)
    assert (ballot == sum(1 << lane for lane in range(0, 32, 3))).all()
    groups = each_lane("tl::match_any_sync(lane / 5)", "unsigned", out=np.uint32)
    expected = [sum(1 << other for other in range(32) if other // 5 == lane // 5) for lane in LANES]
    assert (groups == expected).all()
    assert (each_lane("tl::match_all_sync(7u) == 0xffffffffu") == 1).all()
    assert (each_lane("tl::match_all_sync(lane == 3 ? 8u : 7u)") == 0).all()


def test_divergent_lanes_exchange_among_themselves():
    before = """
    int r = 0;
    if (lane % 2 == 0) {
      for (int i = 0; i < lane; ++i) r += 0;
      r = tl::shfl_xor(v, 2, 32, 0x55555555u);
    } else {
      r = tl::shfl_xor(v, 4, 32, 0xaaaaaaaau) + 1000;
    }
    """
    result = each_lane("r", before=before)
    assert (result[::2] == 3 * (LANES[::2] ^ 2) + 1).all()
    assert (result[1::2] == 3 * (LANES[1::2] ^ 4) + 1001).all()


def test_the_active_mask_is_that_of_the_branch():
    before = """
    unsigned r = 0;
    if (lane >= 20) r = tl::activemask(); else if (lane < 3) r = tl::activemask() + 0u;
    """
    result = each_lane("r", "unsigned", out=np.uint32, before=before)
    assert (result[:3] == 0b111).all()
    assert (result[3:20] == 0).all()
    assert (result[20:] == 0xFFF00000).all()


@pytest.mark.parametrize("threads", [32, 48, 7])
def test_reductions_cover_the_lanes_there_are(threads):
    values = 3 * np.arange(threads) + 1
    warps = [values[i : i + 32] for i in range(0, threads, 32)]
    for name, reduce in [("sum", np.sum), ("max", np.max), ("min", np.min)]:
        result = each_lane(f"tl::warp_reduce_{name}(v)", block=threads)
        assert (result == np.concatenate([np.full(len(w), reduce(w)) for w in warps])).all()


def test_reductions_prefer_numbers_to_nan():
    before = "if (lane == 3) v = __int_as_float(0x7fc00000);"
    result = each_lane("tl::warp_reduce_max(v)", "float", out=np.float32, before=before)
    assert (result == 94).all()


def test_bitwise_reductions():
    assert (each_lane("tl::warp_reduce_bitor(v)") == 127).all()
    assert (each_lane("tl::warp_reduce_bitand(v | 64)") == 64).all()


def test_thread_indices():
    expression = "tl::get_lane_idx() + 100 * tl::get_warp_idx() + 10000 * tl::get_warp_group_idx()"
    threads = np.arange(160)
    result = each_lane(expression, block=160)
    assert (result == threads % 32 + 100 * (threads // 32) + 10000 * (threads // 128)).all()
    elected = each_lane("tl::shuffle_elect(64) + 2 * tl::shuffle_elect(0)", block=160)
    assert (elected == (threads % 64 == 0) + 2 * (threads == 0)).all()


def test_what_an_absent_lane_holds_is_not_a_number():
    before = "if (lane >= 16) return;"
    result = each_lane("tl::shfl_xor(v, 16)", "float", out=np.float32, before=before)
    assert np.isnan(result[:16]).all()


def test_a_lane_outside_of_its_mask_is_refused():
    with pytest.raises(EmulatorError, match=r"thread 1: lane 1 executes a shuffle with a mask"):
        each_lane("tl::shfl_sync(v, 0, 32, 1u)")


def test_a_lane_that_never_comes_is_a_deadlock():
    with pytest.raises(EmulatorError) as error:
        each_lane("v", before="if (lane != 9) v = tl::shfl_sync(v, 0); else tl::sync_warp();")
    assert "threads 0-8, 10-31 wait in a shuffle for lanes 0-31" in str(error.value)
    assert "threads 9 wait in a warp barrier" in str(error.value)


@pytest.mark.parametrize("row", LDMATRIX_ROWS, ids=lambda row: row.name)
def test_matrix_moves_follow_their_layout(row):
    source = f"""
    #include <tl/ldmatrix.h>
    extern "C" __global__ void kernel(const unsigned short* in, unsigned short* out) {{
      __shared__ alignas(16) unsigned short tile[4][8][8];
      unsigned registers[{row.count}];
      unsigned short* r = reinterpret_cast<unsigned short*>(registers);
      unsigned short* all = &tile[0][0][0];
      for (int i = threadIdx.x; i < 256; i += 32) all[i] = {0 if row.store else "in[i]"};
      __syncwarp();
      unsigned short* address = tile[threadIdx.x / 8 % {row.count}][threadIdx.x % 8];
      if ({int(row.store)}) {{
        for (int i = 0; i < {2 * row.count}; ++i) r[i] = in[threadIdx.x * {2 * row.count} + i];
      }}
      tl::{row.name}({"address, registers" if row.store else "registers, address"});
      __syncwarp();
      for (int i = 0; i < {2 * row.count}; ++i) {{
        int place = threadIdx.x * {2 * row.count} + i;
        out[place] = {"all[place]" if row.store else "r[i]"};
      }}
    }}
    """
    count = 64 * row.count
    given = np.arange(1, 257, dtype=np.uint16)
    result = np.zeros(count, np.uint16)
    run(source, given, result, checks=["race", "uninit"])
    places = [row.position(lane, i) for lane in range(32) for i in range(2 * row.count)]
    index = np.array([64 * m + 8 * r + c for m, r, c in places])
    if row.store:
        assert (result[index] == given[:count]).all()
    else:
        assert (result == given[index]).all()


def test_rows_of_matrices_are_aligned():
    source = """
    #include <tl/ldmatrix.h>
    extern "C" __global__ void kernel() {
      __shared__ alignas(16) unsigned short tile[300];
      unsigned r[1];
      tl::ldmatrix_x1<false>(r, tile + 4 + threadIdx.x * 8);
    }
    """
    with pytest.raises(EmulatorError, match="the row of a matrix is not aligned to 16 bytes"):
        run(source)
