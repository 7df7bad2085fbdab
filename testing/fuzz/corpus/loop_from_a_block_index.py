"""A loop whose bounds are a block index of a grid known only at the call."""

import tilelang.language as T

m, n = T.dynamic("m, n")
CALLS = [{"m": 11, "n": 18}, {"m": 3, "n": 5}]


@T.prim_func
def main(A: T.Tensor((m, n), "float32"), C: T.Tensor((m, n), "float32")):
    with T.Kernel(T.ceildiv(n, 4), T.ceildiv(m, 4), threads=32) as (bx, by):
        X = T.alloc_fragment((4, 4), "float32")
        T.copy(A[by * 4, bx * 4], X)
        for r in T.serial(by, by + 2):
            for i, j in T.Parallel(4, 4):
                x = X[i, j]
                X[i, j] = x + T.cast(r, "float32")
        T.copy(X, C[by * 4, bx * 4])
