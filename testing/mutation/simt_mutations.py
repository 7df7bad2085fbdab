"""Mutations of the passes that make thread programs, noticed by emulated CUDA.

A fault that leaves the results alone on the emulator's schedule, such as a missing barrier, is
noticed by its checks.
"""

from __future__ import annotations

from testing.mutation.edit import Mutation

__all__ = ["SIMT_MUTATIONS"]

_SIMT = "tilelang.transform.simt"
_GEMM = "tilelang.cuda.op.gemm"


def _planted(
    name: str,
    where: str,
    edits: tuple[tuple[str, str] | tuple[str, str, int], ...],
    *kernels: str,
) -> Mutation:
    return Mutation(name, where, edits, kernels, how="cuda")


SIMT_MUTATIONS: tuple[Mutation, ...] = (
    _planted(
        "barriers: none is placed",
        f"{_SIMT}.barriers:_meet",
        (("_needs_barrier(walk, touches)", "False"),),
        "reversed_tile",
    ),
    _planted(
        "barriers: reads do not wait for writes",
        f"{_SIMT}.memory:Touch.conflicts",
        (("self.mode == other.mode and self.mode in 'ra'", "self.mode in 'ra'"),),
        "reversed_tile",
    ),
    _planted(
        "barriers: writes do not wait for reads",
        f"{_SIMT}.memory:Touch.conflicts",
        (("self.mode == other.mode and self.mode in 'ra'", "other.mode in 'ra'"),),
        "reversed_tile",
    ),
    _planted(
        "barriers: loops are walked once",
        f"{_SIMT}.barriers:_rounds",
        (
            (
                "[_first(touch) for touch in again] == [_first(touch) for touch in entry]",
                "True",
            ),
        ),
        "reversed_tile",
    ),
    _planted(
        "barriers: tiles that share bytes do not meet",
        f"{_SIMT}.barriers:_may_meet",
        (
            (
                "first[0] < second[0] + second[1] and second[0] < first[0] + first[1]",
                "False",
            ),
        ),
        "reused_memory",
    ),
    _planted(
        "barriers: versions of a pipelined tile never meet",
        f"{_SIMT}.barriers:_may_meet",
        (("not _other_version(walk, a.indices[0], b.indices[0])", "False"),),
        "swizzled_product",
    ),
    _planted(
        "barriers: all threads count as alike",
        f"{_SIMT}.uniform:Uniformity.is_uniform",
        (("not differs", "True"),),
        "branch_behind_an_exchange",
    ),
    _planted(
        "memory: tiles that live together share bytes",
        f"{_SIMT}.shared_memory:_together",
        (("a.first <= b.last and b.first <= a.last", "False"),),
        "live_together",
    ),
    _planted(
        "memory: a tile is needed up to its first use",
        f"{_SIMT}.shared_memory:_Lives._touch",
        (("life.last = self._clock", "pass"),),
        "live_together",
        "swizzled_product",
    ),
    _planted(
        "swizzle: two elements in one place",
        "tilelang.layout.swizzle:_bank_swizzle_2d",
        (("(j % block // vector) ^ phase", "(j % block // vector) & phase"),),
        "swizzled_product",
    ),
    _planted(
        "swizzle: stores ignore it",
        "tilelang.transform.flatten:flatten_buffers",
        (("offset_of(stmt.buffer, stmt.indices)", "_offset(stmt.buffer, stmt.indices)"),),
        "swizzled_by_elements",
    ),
    _planted(
        "guard: an index may equal the size, in thread programs",
        "tilelang.transform.guard_accesses:_unproved",
        (("T.LT(index, size)", "T.LE(index, size)"),),
        "one_past_the_end",
        "tails",
    ),
    _planted(
        "nest: iterations past the end run",
        f"{_SIMT}.parallel:_Lowered._guarded",
        (("loop.covered(axis) > extent", "False"),),
        "odd_tiles",
    ),
    _planted(
        "nest: the guard of the tail is off by one",
        f"{_SIMT}.parallel:_Lowered._guarded",
        (("T.const(extent, 'int32')", "T.const(extent + 1, 'int32')"),),
        "odd_tiles",
        "tails",
    ),
    _planted(
        "nest: the last iteration is dropped",
        f"{_SIMT}.parallel:_Lowered._guarded",
        (("T.const(extent, 'int32')", "T.const(extent - 1, 'int32')"),),
        "odd_tiles",
        "tails",
    ),
    _planted(
        "nest: idle threads take part",
        f"{_SIMT}.parallel:_Lowered._guarded",
        (("loop.num_threads < ctx.threads", "False"),),
        "few_iterations",
    ),
    _planted(
        "nest: all that repeat an iteration write",
        f"{_SIMT}.parallel:_Lowered._first_of",
        (("T.EQ(_expr(part.of(self.ctx.thread)), T.const(0, 'int32'))", "T.const(True, 'bool')"),),
        "row_results",
    ),
    _planted(
        "vectors: any two neighbours count as aligned",
        f"{_SIMT}.defaults:divides",
        (
            ("value % width == 0", "True"),
            ("int(found.coeff) % width == 0 and int(found.base) % width == 0", "True"),
        ),
        "few_iterations",
    ),
    _planted(
        "vectors: conditions count as alike",
        f"{_SIMT}.defaults:uniform",
        (("divides(rest - condition.b, width, analyzer)", "True"),),
        "few_iterations",
    ),
    _planted(
        "pipeline: copies are not waited for",
        f"{_SIMT}.software_pipeline:_pipelined",
        (("stages - 2", "stages"),),
        "swizzled_product",
    ),
    _planted(
        "pipeline: one version too few",
        f"{_SIMT}.software_pipeline:_pipelined",
        (
            (
                "T.floormod(relative, T.const(stages, dtype))",
                "T.floormod(relative, T.const(stages - 1, dtype))",
            ),
        ),
        "swizzled_product",
    ),
    _planted(
        "pipeline: copies run on past the end",
        f"{_SIMT}.software_pipeline:_pipelined",
        (("T.LT(ahead, end)", "T.LE(ahead, end)"),),
        "product_transposed_b",
        "swizzled_product",
    ),
    _planted(
        "pipeline: the first copies are for one iteration",
        f"{_SIMT}.software_pipeline:_pipelined",
        (("loop.min + ahead", "loop.min"),),
        "swizzled_product",
    ),
    _planted(
        "inference: whoever reads a tile is taken to hold it",
        f"{_SIMT}.agreement:_agrees",
        (("tile.written_by(mine) if access.is_write else tile.holds_for(mine)", "True"),),
        "tile_and_its_mirror",
    ),
    _planted(
        "reduce: warps are not joined",
        f"{_SIMT}.reduce:lower_reduce",
        (("exchange_warps(partial, source, result, warps, fold, dim, ctx)", "[]"),),
        "row_results",
    ),
    _planted(
        "reduce: half of the lanes are joined",
        f"{_SIMT}.reduce:exchange_lanes",
        (("distance < part.stride * part.extent", "2 * distance < part.stride * part.extent"),),
        "row_results",
        "reduce_rows",
    ),
    _planted(
        "reduce: padding is added up",
        f"{_SIMT}.reduce:inside",
        (("tile.covered(axis) > extent", "False"),),
        "row_results",
        "reduce_rows",
    ),
    _planted(
        "block: every thread does what happens once",
        f"{_SIMT}.once:once",
        (("T.EQ(ctx.thread, T.const(0, 'int32'))", "T.const(True, 'bool')"),),
        "block_scalars",
    ),
    _planted(
        "block: a local array that a nest fills stays with its threads",
        f"{_SIMT}.block_arrays:share_block_arrays",
        (("access.scope == 'local'", "False"),),
        "block_scalars",
    ),
    _planted(
        "matrices: the warps' columns are exchanged with their rows",
        f"{_GEMM}:_Gemm._base",
        (("name == 'A'", "name == 'B'"),),
        "swizzled_product",
    ),
    _planted(
        "matrices: ldmatrix starts at the next row",
        f"{_GEMM}:_Gemm._by_ldmatrix",
        (("self.lane % 8", "(self.lane + 1) % 8"),),
        "swizzled_product",
    ),
)
