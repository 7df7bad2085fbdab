"""Votes, shuffles and warp reductions as loops over the lanes of a warp.

Every thread's operands have been stored to arrays indexed by the thread. A collective fills one
result array of the same shape. ``active`` says which threads take part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import UnsupportedError
from tilelang.ir.expr import dtype_of

__all__ = ["WARP_SIZE", "Exchange", "collective"]

WARP_SIZE = 32
Predicate = Callable[[Any], ir.Expr]


@dataclass(frozen=True)
class Exchange:
    """One collective: its name, per-thread operand arrays, result array and who takes part."""

    name: str
    operands: tuple[ir.Var, ...]
    result: ir.Var
    threads: int
    active: Predicate
    span: ir.Span | None


def collective(exchange: Exchange) -> T.Stmt:
    """The statements that fill ``exchange.result``.

    Raises
    ------
    UnsupportedError
        If the collective has no CPU form.
    """
    name = exchange.name
    if name in _SOURCES:
        return _shuffle(exchange)
    if name in ("match_any_sync", "match_all_sync"):
        return _match(exchange)
    if name in _FOLDS:
        return _fold(exchange)
    if name == "shuffle_elect":
        return _elect(exchange)
    raise UnsupportedError.on_backend(f"T.{name}", "cpu", (), exchange.span)


def _loop(extent: Any, body: Callable[[ir.Var], T.Stmt], name: str) -> T.Stmt:
    var = T.Var(name, "int32")
    return T.For(var, 0, extent, T.ForKind.SERIAL, body(var))


def _int(value: int) -> ir.Expr:
    return T.const(value, "int32")


# Lane to read from: (lane, first lane of the group, amount, width) -> (source, in reach).
_SOURCES: dict[str, Callable[..., tuple[Any, Any]]] = {
    "shfl_sync": lambda lane, first, n, w: (first + T.floormod(n, w), T.const(True, "bool")),
    "shfl_xor": lambda lane, first, n, w: (
        T.bitwise_xor(lane, n),
        T.LT(T.bitwise_xor(lane, n), first + w),
    ),
    "shfl_up": lambda lane, first, n, w: (lane - n, T.GE(lane - n, first)),
    "shfl_down": lambda lane, first, n, w: (lane + n, T.LT(lane + n, first + w)),
}


def _shuffle(x: Exchange) -> T.Stmt:
    value, amount, width = x.operands[:3]

    def body(t: ir.Var) -> T.Stmt:
        lane = T.floormod(t, _int(WARP_SIZE))
        w = T.min(width[t], _int(WARP_SIZE))
        first = lane - T.floormod(lane, w)
        source, reach = _SOURCES[x.name](lane, first, amount[t], w)
        origin = t - lane + T.if_then_else(reach, source, lane)
        there = T.And(T.GE(origin, _int(0)), T.LT(origin, _int(x.threads)))
        missing = T.const(0, dtype_of(x.result))  # a lane of a partial warp
        return T.BufferStore(x.result, T.if_then_else(there, value[origin], missing), [t], x.span)

    return _loop(x.threads, body, "t")


def _truth(value: ir.Expr) -> ir.Expr:
    return value if dtype_of(value) == "bool" else T.NE(value, T.const(0, dtype_of(value)))


def _named(mask: ir.Var | None, t: Any, lane: Any) -> ir.Expr:
    """Whether the mask of thread ``t`` names ``lane``."""
    if mask is None:
        return T.const(True, "bool")
    bit = T.bitwise_and(T.shift_right(mask[t], lane.astype("uint32")), T.const(1, "uint32"))
    return T.NE(bit, T.const(0, "uint32"))


@dataclass(frozen=True)
class _Fold:
    """A fold over lanes: step, the dtype it is carried in (None: the operand's), start value."""

    step: Callable[[ir.Expr, ir.Expr, Any], ir.Expr]
    dtype: str | None = None
    start: int = 0
    masked: bool = False
    block_wide: bool = False
    from_first: bool = False


def _bit(lane: Any) -> ir.Expr:
    return T.shift_left(T.const(1, "uint64"), lane.astype("uint64"))


def _or_bit(total: ir.Expr, value: ir.Expr, lane: Any) -> ir.Expr:
    return T.bitwise_or(total, T.if_then_else(_truth(value), _bit(lane), T.const(0, "uint64")))


def _any(total: ir.Expr, value: ir.Expr, lane: Any) -> ir.Expr:
    return T.if_then_else(_truth(value), T.const(1, "int32"), total)


def _all(total: ir.Expr, value: ir.Expr, lane: Any) -> ir.Expr:
    return T.if_then_else(_truth(value), total, T.const(0, "int32"))


_FOLDS: dict[str, _Fold] = {
    "any_sync": _Fold(_any, "int32", 0, masked=True),
    "all_sync": _Fold(_all, "int32", 1, masked=True),
    "ballot_sync": _Fold(_or_bit, "uint64", 0, masked=True),
    "activemask": _Fold(lambda total, value, lane: T.bitwise_or(total, _bit(lane)), "uint64"),
    "syncthreads_count": _Fold(
        lambda a, v, lane: a + _truth(v).astype("int32"), "int32", 0, block_wide=True
    ),
    "syncthreads_and": _Fold(_all, "int32", 1, block_wide=True),
    "syncthreads_or": _Fold(_any, "int32", 0, block_wide=True),
    "warp_reduce_sum": _Fold(lambda a, v, lane: a + v),
    "warp_reduce_max": _Fold(lambda a, v, lane: T.max(a, v), from_first=True),
    "warp_reduce_min": _Fold(lambda a, v, lane: T.min(a, v), from_first=True),
    "warp_reduce_bitand": _Fold(lambda a, v, lane: T.bitwise_and(a, v), from_first=True),
    "warp_reduce_bitor": _Fold(lambda a, v, lane: T.bitwise_or(a, v), from_first=True),
}


def _fold(x: Exchange) -> T.Stmt:
    """Fold the operands of every group of lanes and give each lane the total."""
    rule = _FOLDS[x.name]
    group = x.threads if rule.block_wide else min(WARP_SIZE, x.threads)
    dtype = rule.dtype or dtype_of(x.result)
    mask = x.operands[1] if rule.masked and len(x.operands) > 1 else None
    total = T.decl_buffer((1,), dtype, "total", scope="local", layout=None)
    seen = T.decl_buffer((1,), "bool", "seen", scope="local", layout=None)

    def one(t: ir.Var) -> T.Stmt:
        first = t - T.floormod(t, _int(group))
        size = T.min(_int(group), _int(x.threads) - first)

        def step(lane: ir.Var) -> T.Stmt:
            value = x.operands[0][first + lane] if x.operands else T.const(1, "int32")
            combined: ir.Expr = rule.step(total[0], value, lane)
            if rule.from_first:
                combined = T.Select(seen[0], combined, value)
            takes_part = T.And(x.active(first + lane), _named(mask, t, lane))
            stores: list[T.Stmt] = [T.BufferStore(total, combined, [0])]
            if rule.from_first:
                stores.append(T.BufferStore(seen, T.const(True, "bool"), [0]))
            return T.IfThenElse(takes_part, T.stmt_seq(*stores), None)

        value = total[0] if dtype == dtype_of(x.result) else total[0].astype(dtype_of(x.result))
        return T.stmt_seq(
            T.BufferStore(total, T.const(rule.start, dtype), [0]),
            T.BufferStore(seen, T.const(False, "bool"), [0]),
            _loop(size, step, "lane"),
            T.BufferStore(x.result, value, [t], x.span),
        )

    return T.SeqStmt([T.AllocBuffer(total), T.AllocBuffer(seen), _loop(x.threads, one, "t")])


def _elect(x: Exchange) -> T.Stmt:
    """True in the first thread of every group that takes part; 0 means the whole block."""
    last = T.decl_buffer((1,), "int32", "last", scope="local", layout=None)

    def one(t: ir.Var) -> T.Stmt:
        size = x.operands[0][t]
        group = T.if_then_else(T.EQ(size, _int(0)), _int(0), T.floordiv(t, size))
        first = T.And(x.active(t), T.NE(group, last[0]))
        return T.SeqStmt(
            [
                T.BufferStore(x.result, first, [t], x.span),
                T.IfThenElse(x.result[t], T.BufferStore(last, group, [0]), None),
            ]
        )

    none = T.BufferStore(last, _int(-1), [0])
    return T.SeqStmt([T.AllocBuffer(last), none, _loop(x.threads, one, "t")])


def _match(x: Exchange) -> T.Stmt:
    """The mask of lanes that hold the same value; for ``match_all`` only if all lanes do."""
    values, mask = x.operands[0], x.operands[1]
    same = T.decl_buffer((1,), "uint64", "same", scope="local", layout=None)
    everyone = T.decl_buffer((1,), "uint64", "everyone", scope="local", layout=None)
    zero = T.const(0, "uint64")

    def one(t: ir.Var) -> T.Stmt:
        first = t - T.floormod(t, _int(WARP_SIZE))
        size = T.min(_int(WARP_SIZE), _int(x.threads) - first)

        def step(lane: ir.Var) -> T.Stmt:
            equal = T.EQ(values[first + lane], values[t])
            update = [
                T.BufferStore(everyone, T.bitwise_or(everyone[0], _bit(lane)), [0]),
                T.BufferStore(
                    same, T.bitwise_or(same[0], T.if_then_else(equal, _bit(lane), zero)), [0]
                ),
            ]
            return T.IfThenElse(
                T.And(x.active(first + lane), _named(mask, t, lane)), T.SeqStmt(update), None
            )

        found: ir.Expr = same[0]
        if x.name == "match_all_sync":
            found = T.if_then_else(T.EQ(same[0], everyone[0]), same[0], zero)
        return T.SeqStmt(
            [
                T.BufferStore(same, zero, [0]),
                T.BufferStore(everyone, zero, [0]),
                _loop(size, step, "lane"),
                T.BufferStore(x.result, found.astype(dtype_of(x.result)), [t], x.span),
            ]
        )

    return T.SeqStmt([T.AllocBuffer(same), T.AllocBuffer(everyone), _loop(x.threads, one, "t")])
