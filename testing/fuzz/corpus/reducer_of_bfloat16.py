"""Neutral elements of floats that TVM knows no infinity of."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((4, 3), "bfloat16"), C: T.Tensor((2, 3), "bfloat16")):
    with T.Kernel(1, threads=32):
        R = T.alloc_fragment((3,), "bfloat16")
        high = T.alloc_reducer((3,), "bfloat16", op="max")
        low = T.alloc_reducer((3,), "bfloat16", op="min")
        T.reducer_init(high)
        T.reducer_init(low)
        for i, j in T.Parallel(4, 3):
            T.reducer_update(high[j], A[i, j])
            T.reducer_update(low[j], A[i, j])
        T.finalize_reducer(high, R)
        T.copy(R, C[0, 0:3])
        T.finalize_reducer(low, R)
        T.copy(R, C[1, 0:3])
