"""Mutations of thread programs and of launches."""

from __future__ import annotations

from testing.mutation.edit import Mutation

__all__ = ["PROGRAM_MUTATIONS"]

_THREADS = "tilelang.cpu.transform.threads"
_HOST = "tilelang.engine.host_plan"

PROGRAM_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "threads: barriers do not separate",
        f"{_THREADS}.statements:lower_statement",
        (("flush()", "pass", 1),),
        ("staged_threads",),
    ),
    Mutation(
        "threads: axes counted z first",
        f"{_THREADS}.block:thread_indices",
        (
            (
                "[axis for axis in 'xyz' if axis in by_axis]",
                "[axis for axis in 'zyx' if axis in by_axis]",
            ),
        ),
        ("thread_dimensions",),
    ),
    Mutation(
        "threads: the linear number counts z first",
        f"{_THREADS}.block:Block.linear_thread",
        (("'zyx'", "'xyz'"),),
        ("thread_dimensions",),
    ),
    Mutation(
        "threads: masked threads run too",
        f"{_THREADS}.block:for_threads",
        (("masked and block.masks", "False"),),
        ("divergence",),
    ),
    Mutation(
        "threads: a branch inside forgets the one around",
        f"{_THREADS}.control:lower_branch",
        (("block.active(t)", "T.const(True, 'bool')"),),
        ("divergence",),
    ),
    Mutation(
        "threads: else is taken with then",
        f"{_THREADS}.control:lower_branch",
        (("T.And(there, T.Not(taken[t]))", "there"),),
        ("divergence",),
    ),
    Mutation(
        "threads: all share one variable",
        f"{_THREADS}.one_thread:_Rewriter._store",
        (("[self.t, *indices]", "[0, *indices]"),),
        ("own_storage",),
    ),
    Mutation(
        "threads: a tile construct runs in thread 0 only",
        f"{_THREADS}.once:run_once",
        (("T.GE(leader, T.const(0, 'int32'))", "T.EQ(leader, T.const(0, 'int32'))"),),
        ("tiles_among_threads",),
    ),
    Mutation(
        "threads: lanes count through the block",
        f"{_THREADS}.one_thread:_Rewriter._index_call",
        (("T.floormod(t, size)", "t"),),
        ("thread_dimensions",),
    ),
    Mutation(
        "shuffle: the width is ignored",
        f"{_THREADS}.collectives:_shuffle",
        (("T.min(width[t], _int(WARP_SIZE))", "_int(WARP_SIZE)"),),
        ("shuffles",),
    ),
    Mutation(
        "shuffle: the first lane does not reach the one before",
        f"{_THREADS}.collectives:_SOURCES",
        (("T.GE(lane - n, first)", "T.GT(lane - n, first)"),),
        ("shuffles",),
    ),
    Mutation(
        "shuffle: the last lane reaches one too far",
        f"{_THREADS}.collectives:_SOURCES",
        (("T.LT(lane + n, first + w)", "T.LE(lane + n, first + w)"),),
        ("shuffles",),
    ),
    Mutation(
        "shuffle: always from the first warp",
        f"{_THREADS}.collectives:_shuffle",
        (
            (
                "t - lane + T.if_then_else(reach, source, lane)",
                "T.if_then_else(reach, source, lane)",
            ),
        ),
        ("shuffles",),
    ),
    Mutation(
        "vote: masks name everybody",
        f"{_THREADS}.collectives:_named",
        (("mask is None", "True"),),
        ("votes",),
    ),
    Mutation(
        "vote: threads that left vote too",
        f"{_THREADS}.collectives:_fold",
        (("T.And(x.active(first + lane), _named(mask, t, lane))", "_named(mask, t, lane)"),),
        ("divergence",),
    ),
    Mutation(
        "vote: the block is one warp",
        f"{_THREADS}.collectives:_fold",
        (("x.threads if rule.block_wide else min(WARP_SIZE, x.threads)", "WARP_SIZE"),),
        ("votes",),
    ),
    Mutation(
        "vote: any counts false",
        f"{_THREADS}.collectives:_any",
        (("T.const(1, 'int32')", "T.const(0, 'int32')"),),
        ("divergence",),
    ),
    Mutation(
        "host: every workspace is the first",
        f"{_HOST}:_add_device",
        (("ArgRef('workspace', index)", "ArgRef('workspace', 0)"),),
        ("workspaces",),
    ),
    Mutation(
        "host: sizes are passed in the wrong order",
        f"{_HOST}:_add_device",
        (("ArgRef('symbol', index)", "ArgRef('symbol', len(state.symbols) - 1 - index)"),),
        ("scalars",),
    ),
    Mutation(
        "host: launches in reverse",
        f"{_HOST}:_add_device",
        (
            (
                "state.devices.append(DeviceFunction(name, func, launch))",
                "state.devices.insert(0, DeviceFunction(name, func, launch))",
            ),
        ),
        ("workspaces",),
    ),
    Mutation(
        "host: conditions around launches are ignored",
        f"{_HOST}:_host_launch",
        (("('select', condition, grid[0], 0)", "grid[0]"),),
        ("workspaces",),
    ),
    Mutation(
        "host: the last launch of a loop is dropped",
        f"{_HOST}:_host_for",
        (
            (
                "range(start, start + extent, step or 1)",
                "range(start, start + extent - 1, step or 1)",
            ),
        ),
        ("workspaces",),
    ),
    Mutation(
        "host: all grid axes as long as the first",
        f"{_HOST}:_host_launch",
        (("_int_expr(state, loop.extent)", "_int_expr(state, stmt.extent)"),),
        ("grid",),
    ),
)
