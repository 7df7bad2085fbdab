"""Programs whose tiles are used in many ways, by name; each takes its extents and threads."""

from __future__ import annotations

import tilelang.language as T


def row_softmax(m, n, threads):
    """A reduction, its broadcast back, and a second reduction."""

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, n), "float32")
            top = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((m,), "float32")
            T.copy(A, x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(m, n):
                x[i, j] = x[i, j] - top[i]
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(m, n):
                x[i, j] = x[i, j] + total[i] * 2
            T.copy(x, B)

    return program


def column_sums(m, n, threads):
    """The first axis is reduced; the result is used along the rows."""

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, n), "float32")
            total = T.alloc_fragment((n,), "float32")
            T.copy(A, x)
            T.reduce_sum(x, total, dim=0)
            for i, j in T.Parallel(m, n):
                B[i, j] = x[i, j] - total[j]

    return program


def both_sums(m, n, threads):
    """One tile is reduced along both axes, and both results come back."""

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, n), "float32")
            rows = T.alloc_fragment((m,), "float32")
            columns = T.alloc_fragment((n,), "float32")
            T.copy(A, x)
            T.reduce_sum(x, rows, dim=1)
            T.reduce_sum(x, columns, dim=0)
            for i, j in T.Parallel(m, n):
                x[i, j] = x[i, j] + rows[i] * columns[j]
            T.copy(x, B)

    return program


def bias_row(m, n, threads):
    """A row that every row of the tile needs."""

    @T.prim_func
    def program(
        A: T.Tensor((m, n), "float16"), bias: T.Tensor((n,), "float16"),
        B: T.Tensor((m, n), "float16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, n), "float16")
            row = T.alloc_fragment((n,), "float16")
            T.copy(A, x)
            T.copy(bias, row)
            for i, j in T.Parallel(m, n):
                x[i, j] = x[i, j] + row[j]
            T.copy(x, B)

    return program


def turned(m, n, threads):
    """A tile is read across: its uses cannot agree."""

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((n, m), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, n), "float32")
            y = T.alloc_fragment((n, m), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(n, m):
                y[i, j] = x[j, i] * 2
            T.copy(y, B)

    return program


def square_and_turn(m, n, threads):
    """Written along rows, read along rows and across."""

    @T.prim_func
    def program(A: T.Tensor((m, m), "float32"), B: T.Tensor((m, m), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, m), "float32")
            y = T.alloc_fragment((m, m), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(m, m):
                y[i, j] = x[i, j] + x[j, i]
            T.copy(y, B)

    return program


def neighbours(m, n, threads):
    """Elements at an offset belong to other threads."""

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, n), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(m, n):
                B[i, j] = x[i, j] + T.if_then_else(j + 1 < n, x[i, (j + 1) % n], 0.0)

    return program


def scalar_element(m, n, threads):
    """Every thread needs one element of a large tile, and of a small one."""

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, n), "float32")
            few = T.alloc_fragment((2,), "float32")
            T.copy(A, x)
            few[0] = 3.0
            few[1] = x[m - 1, 0]
            for i, j in T.Parallel(m, n):
                B[i, j] = x[i, j] * few[0] + few[1]

    return program


def accumulated(m, n, threads):
    """Statistics carried around a loop."""

    @T.prim_func
    def program(A: T.Tensor((3 * m, n), "float32"), B: T.Tensor((m,), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, n), "float32")
            top = T.alloc_fragment((m,), "float32")
            last = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((m,), "float32")
            T.fill(top, -100)
            T.clear(total)
            for k in T.serial(3):
                T.copy(A[k * m, 0], x)
                T.copy(top, last)
                T.reduce_max(x, top, dim=1, clear=False)
                for i in T.Parallel(m):
                    total[i] = total[i] * 2 + top[i] - last[i]
            T.copy(total, B)

    return program


def staged(m, n, threads):
    """Through shared memory into a tile, an outer product, and back through shared memory."""

    @T.prim_func
    def program(
        A: T.Tensor((m,), "float32"), C: T.Tensor((n,), "float32"), B: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((m,), "float32")
            c = T.alloc_fragment((n,), "float32")
            out = T.alloc_shared((m, n), "float32")
            x = T.alloc_fragment((m, n), "float32")
            T.copy(A, a)
            T.copy(C, c)
            for i, j in T.Parallel(m, n):
                x[i, j] = a[i] * c[j]
            T.copy(x, out)
            for i, j in T.Parallel(m, n):
                B[i, j] = out[m - 1 - i, j]

    return program


def three_axes(m, n, threads):
    """Three axes, the middle one reduced."""

    @T.prim_func
    def program(A: T.Tensor((4, m, n), "float32"), B: T.Tensor((4, m, n), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((4, m, n), "float32")
            s = T.alloc_fragment((4, n), "float32")
            T.copy(A, x)
            T.reduce_sum(x, s, dim=1)
            for h, i, j in T.Parallel(4, m, n):
                B[h, i, j] = x[h, i, j] - s[h, j]

    return program


def slices(m, n, threads):
    """Parts of tiles, and a dimension of extent one."""

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((m, n), "float32")
            column = T.alloc_fragment((m, 1), "float32")
            T.copy(A, x)
            T.reduce_sum(x, column, dim=1)
            for i in T.Parallel(m):
                x[i, 0] = column[i, 0]
            for i, j in T.Parallel(m, n):
                B[i, j] = x[i, j] + column[i, 0]

    return program


PROGRAMS = {
    f.__name__: f
    for f in (
        row_softmax, column_sums, both_sums, bias_row, turned, square_and_turn, neighbours,
        scalar_element, accumulated, staged, three_axes, slices,
    )
}  # fmt: skip
