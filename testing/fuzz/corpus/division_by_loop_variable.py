import tilelang.language as T

M, N, BM, BN, D, STAGES = 1, 1, 1, 1, "int8", 0


@T.prim_func
def main(A: T.Tensor((M, N), D), B: T.Tensor((M, N), D), C: T.Tensor((M, N), D)):
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=32) as (bx, by):
        X = T.alloc_fragment((BM, BN), D)
        Y = T.alloc_fragment((BM, BN), D)
        Z = T.alloc_fragment((BM, BN), D)
        S = T.alloc_shared((BM, BN), D)
        R = T.alloc_fragment((BM,), D)
        Q = T.alloc_fragment((BN,), D)
        T.copy(A[by * BM, bx * BN], X)
        T.copy(B[by * BM, bx * BN], Y)
        for i, j in T.Parallel(BM, BN):
            x = X[i, j]
            y = Y[i, j]
            Z[i, j] = T.min((x + x), (T.cast(i, D) // T.cast(i, D)))
        T.copy(Z, X)
        T.copy(X, C[by * BM, bx * BN])
