"""Kernels of threads, numbers, storage and launches; see :mod:`testing.mutation.tile_kernels`."""

from __future__ import annotations

from typing import Any

import tilelang.language as T
from testing.mutation.registry import kernel

# --- threads ------------------------------------------------------------------------------------


@kernel()
def staged_threads() -> Any:
    """Threads exchange through shared memory, between barriers in straight code and in a loop."""

    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), C: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=64) as b:
            tx = T.get_thread_binding(0)
            S = T.alloc_shared((64,), "int32")
            v = T.alloc_var("int32", init=0)
            S[tx] = A[b, tx]
            T.sync_threads()
            v = S[63 - tx] * 2 + tx
            for k in T.serial(3):
                T.sync_threads()
                S[tx] = v
                T.sync_threads()
                v = v + S[(tx + k + 1) % 64]
            C[b, tx] = v

    return main


@kernel()
def thread_dimensions() -> Any:
    """Three thread axes of different extents; lanes and warps count through all of them."""

    @T.prim_func
    def main(C: T.Tensor((4, 3, 8), "int32")):
        with T.Kernel(1, threads=(8, 3, 4)):
            x, y, z = T.get_thread_bindings()
            lane = T.get_lane_idx()
            below = T.shfl_up(x + 10 * y + 100 * z, 1)
            C[z, y, x] = below * 1000 + lane * 10 + T.get_warp_idx()

    return main


@kernel()
def own_storage() -> Any:
    """Arrays and variables that every thread has for itself."""

    @T.prim_func
    def main(A: T.Tensor((16, 4), "int32"), C: T.Tensor((16, 4), "int32")):
        with T.Kernel(1, threads=16):
            tx = T.get_thread_binding(0)
            mine = T.alloc_local((4,), "int32")
            total = T.alloc_var("int32", init=0)
            for i in T.serial(4):
                mine[i] = A[tx, i] + tx
            T.sync_threads()
            for i in T.serial(4):
                total = total + mine[i]
            T.sync_threads()
            for i in T.serial(4):
                C[tx, i] = mine[3 - i] + total

    return main


@kernel()
def divergence() -> Any:
    """Branches that some threads take, with exchanges and votes among those that do."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((3, 64), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            v = T.alloc_var("int32", init=0)
            v = A[tx]
            C[0, tx] = 0
            C[1, tx] = 0
            if tx % 3 == 0:
                if tx < 40:
                    v = v + T.any_sync(v > 7)
                    C[0, tx] = T.warp_reduce_sum(v)
                v = v * 5
            else:
                v = T.warp_reduce_max(v) - v
                C[1, tx] = T.cast(T.popcount(T.cast(T.activemask(), "uint32")), "int32")
            C[2, tx] = v

    return main


@kernel()
def shuffles() -> Any:
    """Every shuffle over whole warps and parts of them."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((8, 64), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            v = A[tx] + tx * 100
            C[0, tx] = T.shfl_xor(v, 5)
            C[1, tx] = T.shfl_xor(v, 3, 8)
            C[2, tx] = T.shfl_up(v, 2)
            C[3, tx] = T.shfl_up(v, 2, 8)
            C[4, tx] = T.shfl_down(v, 3)
            C[5, tx] = T.shfl_down(v, 3, 16)
            C[6, tx] = T.shfl_sync(v, 9)
            C[7, tx] = T.shfl_sync(v, 1, 4)

    return main


@kernel()
def votes() -> Any:
    """Votes of warps, of named lanes and of the block; the last warp is not full."""

    @T.prim_func
    def main(A: T.Tensor((80,), "int32"), C: T.Tensor((6, 80), "int64")):
        with T.Kernel(1, threads=80):
            tx = T.get_thread_binding(0)
            C[0, tx] = T.cast(T.ballot(A[tx] > 2), "int64")
            C[1, tx] = T.cast(T.any_sync(tx % 32 == 9, 0xFF), "int64")
            C[2, tx] = T.cast(T.all_sync(tx % 32 < 12, 0xFFF), "int64")
            C[3, tx] = T.cast(T.syncthreads_count(A[tx] > 0), "int64")
            C[4, tx] = T.cast(T.syncthreads_and(A[tx] > -9), "int64")
            C[5, tx] = T.cast(T.match_any_sync(A[tx] // 4), "int64")

    return main


@kernel()
def tiles_among_threads() -> Any:
    """A tile operation in a branch that some threads take runs once, for the whole tile."""

    @T.prim_func
    def main(A: T.Tensor((32, 8), "int32"), C: T.Tensor((32, 8), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding(0)
            S = T.alloc_shared((32, 8), "int32")
            T.copy(A, S)
            if tx == 5:
                for i, j in T.Parallel(32, 8):
                    S[i, j] = S[i, j] + 1
            T.sync_threads()
            for j in T.serial(8):
                C[tx, j] = S[31 - tx, j]

    return main


# --- atomics, reducers --------------------------------------------------------------------------


@kernel()
def atomics() -> Any:
    """Every kind on elements and tiles; what an update returns is what was there before."""

    @T.prim_func
    def main(A: T.Tensor((20,), "int32"), C: T.Tensor((4, 20), "int32"),
             C2: T.Tensor((20,), "int32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((20,), "int32")
            T.copy(A, S)
            for i in T.Parallel(20):
                C2[i] = T.atomic_add(C[0, i], S[i], return_prev=True)
            for i in T.Parallel(20):
                T.atomic_max(C[1, 0], S[i])
                T.atomic_min(C[1, 1], S[i])
                T.atomic_add(C[1, 2], S[i])
                T.atomic_or(C[1, 3], S[i] & 5)
            T.atomic_add(C[2, 0:20], S)
            T.atomic_max(C[3, 0:20], S)

    return main


@kernel()
def reducers() -> Any:
    """Every kind of reducer, with the neutral element and with a start."""

    @T.prim_func
    def main(A: T.Tensor((6, 9), "int32"), C: T.Tensor((4, 9), "int32")):
        with T.Kernel(1, threads=32):
            R = T.alloc_fragment((9,), "int32")
            largest = T.alloc_reducer((9,), "int32", op="max")
            total = T.alloc_reducer((9,), "int32", op="sum")
            bits = T.alloc_reducer((9,), "int32", op="bitand")
            T.reducer_init(largest)
            T.reducer_init(total, 100)
            T.reducer_init(bits)
            for i, j in T.Parallel(6, 9):
                T.reducer_update(largest[j], A[i, j] - 50)
                T.reducer_update(total[j], A[i, j])
                T.reducer_update(bits[j], A[i, j])
            T.finalize_reducer(largest, R)
            T.copy(R, C[0, 0:9])
            T.finalize_reducer(total, R)
            T.copy(R, C[1, 0:9])
            T.finalize_reducer(bits, R)
            T.copy(R, C[2, 0:9])

    return main


# --- numbers ------------------------------------------------------------------------------------


@kernel(values="extreme")
def wrapping() -> Any:
    """Integer data at its limits, also where a wider type takes it over."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int8"),
             B2: T.Tensor((64,), "uint16"), C: T.Tensor((6, 64), "int64")):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                C[0, i] = T.cast((A[i] + 1) // 2, "int64")
                C[1, i] = T.cast(A[i] * 3 < A[i], "int64")
                C[2, i] = T.cast(B[i] - T.cast(9, "int8"), "int64")
                C[3, i] = T.cast(T.cast(A[i] * 2, "uint16"), "int64")
                C[4, i] = T.cast(T.max(A[i] - 1, A[i]), "int64")
                C[5, i] = T.cast(T.cast(B2[i], "int32") * T.cast(B2[i], "int32"), "int64")

    return main


@kernel(values="extreme")
def dividing() -> Any:
    """Divisions by zero, by minus one, floored; shifts by the width and more."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32"),
             C: T.Tensor((6, 64), "int32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            v = T.alloc_var("int32", init=0)
            for i in T.serial(64):  # vector instructions shift as they should, scalar ones do not
                v = ((v ^ A[i]) << (B[i] & 63)) + ((v - A[i]) >> (A[i] & 63))
                C[5, i] = v
            for i in T.Parallel(64):
                C[0, i] = A[i] // B[i]
                C[1, i] = A[i] % B[i]
                C[2, i] = A[i] << (B[i] & 63)
                C[3, i] = A[i] >> (B[i] & 63)
                C[4, i] = A[i] // T.cast(i % 3, "int32")

    return main


@kernel(values="special")
def casting() -> Any:
    """Floats beyond the integers, NaN, and double rounding."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((3, 64), "int32"),
             C2: T.Tensor((64,), "bfloat16")):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                C[0, i] = T.cast(A[i] * 1e9, "int32")
                C[1, i] = T.cast(T.cast(A[i] * 30.5, "int8"), "int32")
                C[2, i] = T.cast(T.cast(A[i] * 30.5, "uint8"), "int32")
                # 1 + 2^-8 lies between two bfloat16, and a float32 does not hold the rest.
                C2[i] = T.cast(T.cast(i, "float64") * 1e-12 + 1.00390625, "bfloat16")

    return main


@kernel(values="special")
def extremes() -> Any:
    """Maxima and minima where one operand is NaN, in either order; comparisons of NaN."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float16"),
             C: T.Tensor((5, 128), "float32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(128):
                C[0, i] = T.max(A[i], 1.0)
                C[1, i] = T.min(1.0, A[i])
                C[2, i] = T.cast(T.max(B[i], T.cast(A[i], "float16")), "float32")
                C[3, i] = T.if_then_else(A[i] == A[i], A[i] - A[i], 5.0)
                C[4, i] = T.if_then_else(not (A[i] < 0.0), 1.0, 0.0)

    return main


# --- storage, launches --------------------------------------------------------------------------


@kernel()
def large_tiles() -> Any:
    """Tiles that do not fit the stack, in use at the same time."""

    @T.prim_func
    def main(A: T.Tensor((70000,), "int32"), C: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            X = T.alloc_shared((70000,), "int32")
            Y = T.alloc_shared((70000,), "int32")
            T.copy(A, X)
            for i in T.Parallel(70000):
                Y[i] = X[69999 - i] + 1
            for i in T.Parallel(4):
                C[i] = X[i * 17000] * 100 + Y[i * 3000]

    return main


@kernel(calls=[{"far": 2**30 + 4096}])
def far_elements() -> Any:
    """Offsets beyond 2^31 elements."""
    far = T.dynamic("far")

    @T.prim_func
    def main(A: T.StridedTensor((3, 16), (far, 1), "uint8"), C: T.Tensor((3, 16), "uint8")):
        with T.Kernel(3, threads=32) as b:
            for i in T.Parallel(16):
                C[b, i] = A[b, i] + A[2 - b, 15 - i]

    return main


@kernel()
def strided() -> Any:
    """Columns, every second element, one row for all, and sizes given by expressions."""

    @T.prim_func
    def main(A: T.StridedTensor((5, 7), (1, 5), "int32"),
             B: T.StridedTensor((5, 7), (0, 2), "int32"),
             C: T.StridedTensor((5, 7), (17, 2), "int32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            X = T.alloc_shared((5, 7), "int32")
            T.copy(A, X)
            for i, j in T.Parallel(5, 7):
                C[i, j] = X[i, j] * 10 + B[i, j]

    return main


@kernel()
def grid() -> Any:
    """Three block axes of different extents."""

    @T.prim_func
    def main(C: T.Tensor((3, 4, 5), "int32")):
        with T.Kernel(5, 4, 3, threads=32) as (bx, by, bz):
            C[bz, by, bx] = bx + 10 * by + 100 * bz

    return main


@kernel(
    calls=[{"n": 9, "k": 3, "x": -2.5, "flag": True}, {"n": 20, "k": -1, "x": 7, "flag": False}]
)
def scalars() -> Any:
    """Sizes and scalars of every kind beside each other."""
    n = T.dynamic("n")

    @T.prim_func
    def main(k: T.int16, A: T.Tensor((n,), "float32"), x: T.float32, flag: T.bool,
             C: T.Tensor((n,), "float32")):  # fmt: skip
        with T.Kernel(T.ceildiv(n, 8), threads=32) as b:
            for i in T.Parallel(8):
                C[b * 8 + i] = T.if_then_else(flag, A[b * 8 + i] * x, x + T.cast(k * n, "float32"))

    return main


@kernel(calls=[{"again": 0}, {"again": 1}])
def workspaces() -> Any:
    """Launches that pass data on, some of them under a condition of the host."""

    @T.prim_func
    def main(A: T.Tensor((24,), "int32"), C: T.Tensor((24,), "int32"), again: T.int32):
        W = T.alloc_global((24,), "int32")
        V = T.alloc_global((24,), "int32")
        with T.Kernel(3, threads=32) as b:
            for i in T.Parallel(8):
                W[b * 8 + i] = A[b * 8 + i] * 2
        with T.Kernel(2, threads=32) as b:
            for i in T.Parallel(12):
                V[b * 12 + i] = W[23 - b * 12 - i] + 1
        for r in T.serial(3):
            if again > 0:
                with T.Kernel(1, threads=32):
                    for i in T.Parallel(24):
                        V[i] = V[i] * 3 + W[i] + r
        with T.Kernel(1, threads=32):
            for i in T.Parallel(24):
                C[i] = V[i] - W[i]

    return main
