import tilelang.language as T

N = 64
CALLS = [{}]


@T.prim_func
def main(A: T.Tensor((N, 4), "float32"), C: T.Tensor((N, 4), "float32")):
    with T.Kernel(1, threads=64) as b:
        t = T.get_thread_binding(0)
        own = T.alloc_local((4,), "float32")
        T.copy(A[t, 0:4], own)
        for e in T.serial(4):
            C[t, 3 - e] = own[e]
