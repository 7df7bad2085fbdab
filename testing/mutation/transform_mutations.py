"""Mutations of the passes between tile operations and code: guards, vectors, numbers, storage."""

from __future__ import annotations

from testing.mutation.edit import Mutation

__all__ = ["TRANSFORM_MUTATIONS"]

_GUARD = "tilelang.transform.guard_accesses"
_CPU = "tilelang.cpu.transform"
_NUMERICS = "tilelang.transform.numerics"

TRANSFORM_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "guard: an index may equal the size",
        f"{_GUARD}:_unproved",
        (("T.LT(index, size)", "T.LE(index, size)"),),
        ("one_past_the_end", "tails"),
    ),
    Mutation(
        "guard: no lower bound",
        f"{_GUARD}:_unproved",
        (("T.GE(index, T.const(0, dtype_of(index)))", "T.LT(index, size)"),),
        ("tails",),
    ),
    Mutation(
        "guard: the lower bound is -1",
        f"{_GUARD}:_unproved",
        (("T.const(0, dtype_of(index))", "T.const(-1, dtype_of(index))"),),
        ("tails", "safe_value"),
    ),
    Mutation(
        "guard: only the first condition of an access is tested",
        f"{_GUARD}:_unproved",
        (("T.And(result, condition)", "result"),),
        ("tails",),
    ),
    Mutation(
        "guard: reads are not guarded",
        f"{_GUARD}:_on_load",
        (("condition is None", "True"),),
        ("safe_value", "tails"),
    ),
    Mutation(
        "guard: stores are not guarded",
        f"{_GUARD}:_on_store",
        (("condition is None", "True"),),
        ("one_past_the_end", "tiled_tails"),
    ),
    Mutation(
        "guard: the safe value is ignored",
        f"{_GUARD}:_safe_value",
        (("state.safe_values.get(load.source, 0)", "0"),),
        ("safe_value",),
    ),
    Mutation(
        "guard: the hoisted bound is off by one",
        f"{_GUARD}:_extreme",
        (("T.LT(worst, cond.b)", "T.LE(worst, cond.b)"),),
        ("one_past_the_end", "tails"),
    ),
    Mutation(
        "guard: the hoisted bound looks at the first iteration",
        f"{_GUARD}:_extreme",
        (("reach.max_value", "reach.min_value"),),
        ("one_past_the_end", "tails"),
    ),
    Mutation(
        "guard: the hoisted test keeps one condition",
        f"{_GUARD}:_hoist",
        (("T.And(result, bound)", "result"),),
        ("tails",),
    ),
    Mutation(
        "guard: later loops count as inside too",
        f"{_GUARD}:_on_root",
        (("state.assume_safe = False", "pass"),),
        ("guarded_in_branches",),
    ),
    Mutation(
        "guard: the condition holds in the other branch too",
        f"{_GUARD}:_on_if",
        (("T.Not(condition)", "condition"),),
        ("guarded_in_branches",),
    ),
    Mutation(
        "guard: the last iteration is forgotten",
        f"{_GUARD}:_scoped_for",
        (("loop.extent", "loop.extent - 1"),),
        ("one_past_the_end",),
    ),
    Mutation(
        "vectorize: the tail is dropped",
        f"{_CPU}.vectorize:_split",
        (("size is not None and size % lanes == 0", "True"),),
        ("vector_lengths",),
    ),
    Mutation(
        "vectorize: the tail starts at 0",
        f"{_CPU}.vectorize:_split",
        (("at(whole * lanes + tail)", "at(tail)"),),
        ("vector_lengths",),
    ),
    Mutation(
        "vectorize: vectors overlap",
        f"{_CPU}.vectorize:_split",
        (("at(q * lanes + v)", "at(q * (lanes - 1) + v)"),),
        ("vector_lengths",),
    ),
    Mutation(
        "vectorize: one vector too many",
        f"{_CPU}.vectorize:_split",
        (("T.const(size // lanes, 'int32')", "T.const(size // lanes + 1, 'int32')"),),
        ("vector_lengths",),
    ),
    Mutation(
        "vectorize: serial loops count as parallel",
        f"{_CPU}.vectorize:vectorize_parallel",
        (("loop.kind != T.ForKind.PARALLEL", "loop.kind == T.ForKind.UNROLLED"),),
        ("serial_dependence",),
    ),
    Mutation(
        "vectorize: every loop starts at 0",
        f"{_CPU}.vectorize:vectorize_parallel",
        (("const_int(loop.min) != 0", "False"),),
        ("serial_dependence",),
    ),
    Mutation(
        "numerics: integers do not wrap",
        f"{_NUMERICS}.data_integers:_Wrapper.on_arithmetic",
        (("not self._wraps(node) or _cannot_overflow(node)", "True"),),
        ("wrapping",),
    ),
    Mutation(
        "numerics: a product of bytes counts as one that fits",
        f"{_NUMERICS}.data_integers:_cannot_overflow",
        (("needed <= width(name)", "True"),),
        ("wrapping",),
    ),
    Mutation(
        "numerics: divisors count as not zero",
        f"{_NUMERICS}.data_integers:_Wrapper.on_division",
        (("self._wraps(node) or not safe", "False"),),
        ("dividing",),
    ),
    Mutation(
        "numerics: shifts count as short",
        f"{_NUMERICS}.data_integers:_Wrapper.on_shift",
        (("self._wraps(node) or not (legal or trusted)", "False"),),
        ("dividing",),
    ),
    Mutation(
        "numerics: floats do not saturate",
        f"{_NUMERICS}.casts:_on_cast",
        (("ops.call('float_to_int', target, value, span=node.span)", "node"),),
        ("casting",),
    ),
    Mutation(
        "numerics: float64 rounds twice",
        f"{_NUMERICS}.casts:_to_float32",
        (("source == 'float64'", "False"),),
        ("casting",),
    ),
    Mutation(
        "numerics: max and min do not care for NaN",
        f"{_NUMERICS}.floats:legalize_minmax",
        (("{} if fast_math else {prim.Max: 'max', prim.Min: 'min'}", "{}"),),
        ("extremes",),
    ),
    Mutation(
        "numerics: comparisons and differences are left to the simplifier",
        f"{_NUMERICS}.floats:legalize_minmax",
        (("element(node.a) not in floats", "True"),),
        ("extremes",),
    ),
    Mutation(
        "flatten: strides of the wrong dimensions",
        "tilelang.transform.flatten:_compact_strides",
        (("list(buffer.shape)[1:]", "list(buffer.shape)[:-1]"),),
        ("transpose", "tails"),
    ),
    Mutation(
        "flatten: explicit strides are ignored",
        "tilelang.transform.flatten:_offset",
        (("list(buffer.ty.strides) or _compact_strides(buffer)", "_compact_strides(buffer)"),),
        ("strided",),
    ),
    Mutation(
        "flatten: 32-bit offsets",
        "tilelang.transform.flatten:_may_be_large",
        (("len(buffer.ty.strides)", "False"),),
        ("far_elements",),
    ),
    Mutation(
        "storage: tiles of the arena overlap",
        f"{_CPU}.storage:plan_storage",
        (("offsets[buffer] = used", "offsets[buffer] = used // 2"),),
        ("large_tiles",),
    ),
    Mutation(
        "worker: block axes exchanged",
        f"{_CPU}.worker:block_loop",
        (("axis.loop_var", "axes[-1 - position].loop_var", 1),),
        ("grid",),
    ),
    Mutation(
        "worker: all block axes as long as the first",
        f"{_CPU}.worker:block_loop",
        (("axis.extent.astype('int64')", "axes[0].extent.astype('int64')"),),
        ("grid",),
    ),
    Mutation(
        "worker: the last block is not run",
        f"{_CPU}.worker:block_loop",
        (("end - begin", "end - begin - 1"),),
        ("tiled_tails",),
    ),
    Mutation(
        "worker: float arguments by value, not by bits",
        f"{_CPU}.worker:_slot_value",
        (("T.reinterpret(dtype, narrow)", "narrow.astype(dtype)"),),
        ("scalars",),
    ),
    Mutation(
        "sequential: steps of unrolled loops are ignored",
        f"{_CPU}.sequential:_expandable",
        (("step == 1", "True"),),
        ("stepped_loops",),
    ),
)
