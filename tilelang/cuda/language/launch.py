"""Properties of a CUDA launch: registers per thread, occupancy, persisting cache, random state."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder, intrin
from tilelang.ir.expr import is_buffer
from tilelang.ir.span import user_span

__all__ = [
    "annotate_consumer_reg_alloc",
    "annotate_l2_hit_ratio",
    "annotate_min_blocks_per_sm",
    "annotate_producer_reg_dealloc",
    "dec_max_nreg",
    "disable_warp_group_reg_alloc",
    "inc_max_nreg",
    "rng_init",
    "rng_rand",
    "rng_rand_float",
    "set_max_nreg",
]

_GENERATORS = (
    "curandStatePhilox4_32_10_t",
    "curandStateMRG32k3a_t",
    "curandStateXORWOW_t",
)


def _note(what: str, key: str, value: int) -> None:
    """Put a fact on the launch that is being traced."""
    kernel = builder.current(what).kernel
    if kernel is None:
        raise TraceError(f"{what} is only valid inside 'with T.Kernel(...)'", user_span())
    kernel.annotations[key] = value


def _registers(what: str, count: Any) -> int:
    if not isinstance(count, int) or count % 8 or not 24 <= count <= 240:
        raise TraceError(
            f"{what}: registers must be a multiple of 8 from 24 to 240, found {count!r}",
            user_span(),
        )
    return count


def set_max_nreg(reg_count: int, is_inc: bool) -> None:
    """Give registers back (``is_inc`` False) or ask for more, for all warps of the group.

    Raises
    ------
    TraceError
        If ``reg_count`` is no multiple of 8 from 24 to 240.
    """
    intrin.get("set_max_nreg").emit(_registers("T.set_max_nreg", reg_count), bool(is_inc))


def inc_max_nreg(reg_count: int) -> None:
    """Ask for up to ``reg_count`` registers a thread."""
    set_max_nreg(reg_count, True)


def dec_max_nreg(reg_count: int) -> None:
    """Give registers back, down to ``reg_count`` a thread."""
    set_max_nreg(reg_count, False)


def annotate_producer_reg_dealloc(reg_count: int = 24) -> None:
    """Registers a producer warp keeps when the compiler specialises warps."""
    what = "T.annotate_producer_reg_dealloc"
    _note(what, "tl.producer_registers", _registers(what, reg_count))


def annotate_consumer_reg_alloc(reg_count: int = 240) -> None:
    """Registers a consumer warp gets when the compiler specialises warps."""
    what = "T.annotate_consumer_reg_alloc"
    _note(what, "tl.consumer_registers", _registers(what, reg_count))


def disable_warp_group_reg_alloc() -> None:
    """Leave the register budget alone when the compiler specialises warps."""
    _note("T.disable_warp_group_reg_alloc", "tl.keep_registers", 1)


def annotate_min_blocks_per_sm(n: int) -> None:
    """Ask that ``n`` blocks fit on a multiprocessor: limits the registers a thread may use.

    Raises
    ------
    TraceError
        If ``n`` is no positive int.
    """
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise TraceError(
            f"T.annotate_min_blocks_per_sm: expected an int above 0, found {n!r}", user_span()
        )
    _note("T.annotate_min_blocks_per_sm", "tl.min_blocks_per_sm", n)


def annotate_l2_hit_ratio(ratios: Mapping[Any, float]) -> None:
    """Keep parts of global buffers in the L2 cache.

    Parameters
    ----------
    ratios : dict of buffer to float
        The share of accesses, in (0, 1], that is to hit.

    Raises
    ------
    TraceTypeError
        If a key is no global buffer.
    TraceError
        If a ratio is out of range.
    """
    what, span = "T.annotate_l2_hit_ratio", user_span()
    active = builder.current(what)
    for buffer, ratio in ratios.items():
        if not is_buffer(buffer) or buffer.scope() != "global":
            raise TraceTypeError(f"{what}: expected a global buffer, found {buffer!r}", span)
        if not 0 < float(ratio) <= 1:
            raise TraceError(f"{what}: the ratio must lie in (0, 1], found {ratio}", span)
        active.wrap_rest(partial(_l2_hit_ratio, buffer, float(ratio), span))


def _l2_hit_ratio(buffer: ir.Var, ratio: float, span: ir.Span | None, body: T.Stmt) -> T.Stmt:
    return T.AttrStmt(buffer, "tl.l2_hit_ratio", T.FloatImm("float32", ratio), body, span)


def rng_init(
    seed: Any, seq: Any = None, off: Any = 0, generator: str = "curandStatePhilox4_32_10_t"
) -> None:
    """Start the random numbers of the thread.

    Parameters
    ----------
    seed, seq, off : integer expressions
        ``seq`` defaults to the global number of the thread.
    generator : str
        A state type of cuRAND. All of them draw from Philox 4x32-10; only under its own name are
        the numbers those of cuRAND.

    Raises
    ------
    TraceError
        For an unknown generator.
    """
    if generator not in _GENERATORS:
        raise TraceError(
            f"T.rng_init: unknown generator {generator!r}; expected {' or '.join(_GENERATORS)}",
            user_span(),
        )
    intrin.get("rng_init").emit(seed, "thread" if seq is None else seq, off, generator)


def rng_rand() -> ir.Expr:
    """The next random number of the thread, uniform over uint32."""
    return intrin.get("rng_rand")()


def rng_rand_float(
    bit: Literal[32, 64] = 32, dist: Literal["uniform", "normal"] = "uniform"
) -> ir.Expr:
    """The next random float of the thread, uniform in (0, 1] or standard normal.

    Raises
    ------
    TraceError
        For another width or distribution.
    """
    if bit not in (32, 64) or dist not in ("uniform", "normal"):
        raise TraceError(
            f"T.rng_rand_float: expected bit 32 or 64 and dist uniform or normal, found {bit!r} "
            f"and {dist!r}",
            user_span(),
        )
    return intrin.get("rng_rand_float")(dist, dtype=f"float{bit}")
