"""Mutations of the bodies of tile operations on the CPU."""

from __future__ import annotations

from testing.mutation.edit import Mutation

__all__ = ["OP_MUTATIONS"]

_OP = "tilelang.cpu.op"
_LOWER = "tilelang.cpu.transform.lower_tile_ops"

OP_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "region: the start is ignored",
        "tilelang.transform.loops:_indices",
        (("m + by_dim[d]", "by_dim[d]"), ("m + o", "o")),
        ("tiled_tails", "transpose"),
    ),
    Mutation(
        "copy: rows and columns swapped",
        "tilelang.transform.elementwise:_copy",
        (("load(src, at, dtype_of(dst))", "load(src, at[::-1], dtype_of(dst))"),),
        ("transpose",),
    ),
    Mutation(
        "fill: the first row only",
        "tilelang.transform.elementwise:lower_fill",
        (
            (
                "nest(moving_extents(dst), lambda at: store(dst, at, value, call.span), call.span)",
                "nest([1, *moving_extents(dst)[1:]], lambda at: store(dst, at, value, call.span), "
                "call.span)",
            ),
        ),
        ("product",),
    ),
    Mutation(
        "transpose: indices are not swapped",
        "tilelang.transform.elementwise:lower_transpose",
        (("[*at[:-2], at[-1], at[-2]]", "at"),),
        ("transpose",),
    ),
    Mutation(
        "im2col: the padding of rows is forgotten",
        "tilelang.transform.elementwise:lower_im2col",
        (
            (
                "m // out_w % out_h * attrs.stride + k // channels // attrs.kernel"
                " * attrs.dilation - attrs.pad",
                "m // out_w % out_h * attrs.stride + k // channels // attrs.kernel"
                " * attrs.dilation",
            ),
        ),
        ("unfolded_image",),
    ),
    Mutation(
        "im2col: the output is as wide as without padding",
        "tilelang.transform.elementwise:lower_im2col",
        (("width + 2 * attrs.pad - reach", "width - reach"),),
        ("unfolded_image",),
    ),
    Mutation(
        "im2col: dilation and stride exchanged",
        "tilelang.transform.elementwise:lower_im2col",
        (("attrs.dilation * (attrs.kernel - 1) + 1", "attrs.stride * attrs.kernel"),),
        ("unfolded_image",),
    ),
    Mutation(
        "im2col: the last column of the image counts as outside",
        "tilelang.transform.elementwise:lower_im2col",
        (("x < width", "x < width - 1"),),
        ("unfolded_image",),
    ),
    Mutation(
        "reduce: the tail of a row is dropped",
        f"{_OP}.reduction:_reduce_row",
        (("size is None or done < size", "size is None"),),
        ("reduce_rows",),
    ),
    Mutation(
        "reduce: partial results are not folded together",
        f"{_OP}.reduction:_fold_partial",
        (("range(1, count)", "range(2, count)"),),
        ("reduce_rows",),
    ),
    Mutation(
        "reduce: half of a vector is forgotten",
        f"{_OP}.reduction:_fold_partial",
        (("half >= 1", "half > 1"),),
        ("reduce_rows",),
    ),
    Mutation(
        "reduce: everything starts at 0",
        f"{_OP}.reduction:lower_reduce",
        (("identity(kind, dtype)", "T.const(0, dtype)"),),
        ("reduce_rows",),
    ),
    Mutation(
        "reduce: clear=False is ignored",
        f"{_OP}.reduction:lower_reduce",
        (("not attrs.clear", "False"),),
        ("reduce_rows",),
    ),
    Mutation(
        "reduce: clear=True is ignored",
        f"{_OP}.reduction:lower_reduce",
        (("not attrs.clear", "True"),),
        ("reduce_rows",),
    ),
    Mutation(
        "reduce: no absolute values",
        f"{_OP}.reduction:lower_reduce",
        (("T.abs(element) if attrs.kind.startswith('abs') else element", "element"),),
        ("reduce_rows", "reduce_nan"),
    ),
    Mutation(
        "reduce: NaN wins a comparison",
        f"{_OP}.reduction:_step",
        (
            (
                "T.Select(element > partial, element, partial)",
                "T.Select(partial > element, partial, element)",
            ),
        ),
        ("reduce_nan",),
    ),
    Mutation(
        "reduce: NaN does not propagate",
        "tilelang.transform.folds:combine",
        (("not nan_propagate", "True"),),
        ("reduce_nan",),
    ),
    Mutation(
        "reduce: integers wrap in the dtype of the source",
        "tilelang.transform.folds:working_dtype",
        (("return target", "return source"),),
        ("reduce_wide",),
    ),
    Mutation(
        "reduce: halves are summed as halves",
        "tilelang.transform.folds:working_dtype",
        (
            (
                "accumulator_dtype(source) if not target.startswith('float64') else 'float64'",
                "source",
            ),
        ),
        ("reduce_wide",),
    ),
    Mutation(
        "reduce: columns keep the last row",
        f"{_OP}.reduction:_reduce_columns",
        (("combine(acc[tuple(at)], value(k, at))", "value(k, at)"),),
        ("reduce_columns",),
    ),
    Mutation(
        "scan: reverse is ignored",
        f"{_OP}.reduction:lower_scan",
        (("extent - 1 - k if attrs.reverse else k", "k"),),
        ("scans",),
    ),
    Mutation(
        "scan: the sum runs on into the next row",
        f"{_OP}.reduction:lower_scan",
        (
            (
                "T.SeqStmt([T.AllocBuffer(acc), nest(outer, body, call.span, parallel=False)])",
                "T.SeqStmt([T.AllocBuffer(acc), nest(sizes, lambda rest: T.BufferStore(acc, "
                "identity(attrs.kind, dtype), rest), call.span), "
                "nest(outer, body, call.span, parallel=False)])",
            ),
            ("T.SeqStmt([reset, serial(extent, step)])", "serial(extent, step)"),
        ),
        ("scans",),
    ),
    Mutation(
        "logical: any and all exchanged",
        f"{_OP}.reduction:lower_logical",
        (("T.Or(old, truth) if any_of else T.And(old, truth)", "T.And(old, truth)"),),
        ("logical",),
    ),
    Mutation(
        "logical: all starts false",
        f"{_OP}.reduction:lower_logical",
        (("T.const(not any_of, 'bool')", "T.const(False, 'bool')"),),
        ("logical",),
    ),
    Mutation(
        "gemm: A is not transposed",
        f"{_OP}.gemm:lower_gemm",
        (("not attrs.transpose_A", "True"),),
        ("square_product_transposed_a",),
    ),
    Mutation(
        "gemm: B is not transposed",
        f"{_OP}.gemm:lower_gemm",
        (("attrs.transpose_B", "False"),),
        ("square_product_transposed_b",),
    ),
    Mutation(
        "gemm: clear_accum is ignored",
        f"{_OP}.gemm:_accumulator",
        (("call.attrs.clear_accum", "False"),),
        ("product_cleared",),
    ),
    Mutation(
        "gemm: every product clears the accumulator",
        f"{_OP}.gemm:_accumulator",
        (("call.attrs.clear_accum", "True"),),
        ("product",),
    ),
    Mutation(
        "gemm: the rows of the last block are skipped",
        f"{_OP}.gemm.microkernel:_panel",
        (("p.c.m % rows", "False", 0),),
        ("product",),
    ),
    Mutation(
        "gemm: the columns of the last block are skipped",
        f"{_OP}.gemm.microkernel:blocked_product",
        (("vectors % width", "False", 0),),
        ("product",),
    ),
    Mutation(
        "gemm: an accumulator of odd width is not written back",
        f"{_OP}.gemm.microkernel:blocked_product",
        (("back.append(copy_back)", "pass"),),
        ("product",),
    ),
    Mutation(
        "gemm: transposed squares keep the places off the diagonal",
        f"{_OP}.gemm.pack:_transposed",
        (("row(i + half)", "row(i)", 0),),
        ("square_product_transposed_b",),
    ),
    Mutation(
        "reducer: the start is ignored",
        "tilelang.transform.elementwise:lower_reducer_init",
        (("start is None", "True"),),
        ("reducers",),
    ),
    Mutation(
        "reducer: everything starts at 0",
        "tilelang.transform.elementwise:lower_reducer_init",
        (
            (
                "identity(call.attrs.kind, dtype_of(reducer))",
                "identity('sum', dtype_of(reducer))",
            ),
        ),
        ("reducers",),
    ),
    Mutation(
        "atomic: the element after the update is returned",
        f"{_LOWER}:lower_element_updates",
        (
            ("update(stmt.value, stmt.var)", "update(stmt.value, stmt.value.args[0])"),
            ("T.SeqStmt([load, store])", "T.SeqStmt([store, load])"),
        ),
        ("atomics",),
    ),
    Mutation(
        "atomic: max stores the smaller",
        f"{_LOWER}:_UPDATES",
        (("lambda old, value: T.max(old, value)", "lambda old, value: T.min(old, value)"),),
        ("atomics", "reducers"),
    ),
    Mutation(
        "reducer: a bitwise and overwrites",
        f"{_LOWER}:_UPDATES",
        (("lambda old, value: T.bitwise_and(old, value)", "lambda old, value: value"),),
        ("reducers",),
    ),
)
