"""A division by a loop variable, which starts at 0."""

import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((4,), "int8"), C: T.Tensor((4,), "int8")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            C[i] = A[i] + T.cast(i, "int8") // T.cast(i, "int8")
