"""A temporary in a vector loop, used where TVM takes the loop apart; vectors of one element."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((8, 1), "int8"), C: T.Tensor((8, 1), "int8")):
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((8,), "int8")
        for i in T.vectorized(8):
            x = A[i, 0]
            S[i] = T.if_then_else(x < 3, x, -x)
        for i in T.serial(8):
            for j in T.vectorized(1):
                C[i, j] = S[i] + A[i, j]
