"""Calls in expressions: guarded selection, bit casts, math and thread intrinsics.

The meaning of an intrinsic of the language is the numpy reference of its record. Constructs that
only asynchronous hardware has are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import ir

from tilelang.errors import UnsupportedError
from tilelang.interpreter import lanes
from tilelang.interpreter.machine import Machine
from tilelang.interpreter.nodes import Fn, choose, dtype_of
from tilelang.interpreter.numbers import from_bits, to_bits
from tilelang.interpreter.pointers import as_pointer
from tilelang.interpreter.rules import call_rule, narrow, widen
from tilelang.ir import intrin

__all__ = ["if_then_else", "intrinsic"]


def _refuse(expr: ir.Call, name: str, why: str) -> UnsupportedError:
    return UnsupportedError(f"T.{name} {why}", expr.span)


def intrinsic(c: Any, expr: ir.Call) -> Fn:
    """The function of a call to an intrinsic of the language."""
    record = intrin.find(expr)
    if record is None:
        name = expr.op.name if isinstance(expr.op, ir.Op) else str(expr.op)
        raise UnsupportedError(f"the interpreter has no meaning for {name}", expr.span)
    if record.asynchronous:
        raise _refuse(expr, record.name, "runs on GPUs and in the emulator only")
    if record.reference is None:
        raise _refuse(expr, record.name, "has no meaning in the interpreter")
    if record.lanes:
        return lanes.warp_intrinsic(c, expr, record)
    result, kinds = dtype_of(expr), [dtype_of(a) for a in expr.args]
    parts = [c.value(a) for a in expr.args]
    names = [result.name, *(kind.name for kind in kinds)]
    reference, one_shape = record.reference, len({kind.lanes for kind in kinds}) == 1

    def run(m: Machine) -> Any:
        values = [widen(part(m), kind) for part, kind in zip(parts, kinds, strict=True)]
        if one_shape:
            values = list(np.broadcast_arrays(*values))
        return narrow(reference(names, *values), result)

    return run


def if_then_else(c: Any, expr: ir.Call, arm: Callable[[ir.Expr], Fn]) -> Fn:
    """Each side is evaluated only where it is taken; ``arm`` makes the function of a side."""
    condition, a, b = c.condition(expr.args[0]), arm(expr.args[1]), arm(expr.args[2])
    whole = dtype_of(expr).lanes > 1 and dtype_of(expr.args[0]).lanes == 1

    def run(m: Machine) -> Any:
        taken = condition(m)
        if np.ndim(taken) == 0:
            return a(m) if taken else b(m)
        with m.masked(taken):
            left = a(m)
        with m.masked(~taken):
            right = b(m)
        return choose(taken, left, right, whole)

    return run


@call_rule("prim.likely", "tirx.likely", "tirx.ignore_loop_partition", "tirx.tvm_thread_invariant")
def _transparent(c: Any, expr: ir.Call) -> Fn:
    return c.value(expr.args[0])


@call_rule("tirx.assume")
def _assume(c: Any, expr: ir.Call) -> Fn:
    condition, span = c.condition(expr.args[0]), expr.span

    def run(m: Machine) -> None:
        if np.any(m.active & ~np.asarray(condition(m))):
            raise m.error(f"T.assume({expr.args[0]}) does not hold", span)

    return run


@call_rule("tirx.thread_return")
def _thread_return(c: Any, expr: ir.Call) -> Fn:
    return Machine.leave


@call_rule("tirx.reinterpret")
def _reinterpret(c: Any, expr: ir.Call) -> Fn:
    inner, source, target = c.value(expr.args[0]), dtype_of(expr.args[0]), dtype_of(expr)
    if isinstance(expr.ty, ir.PointerType):
        return lambda m: as_pointer(inner(m))
    if source.lanes == target.lanes:
        return lambda m: from_bits(to_bits(inner(m), source), target)

    def run(m: Machine) -> Any:
        value = np.ascontiguousarray(inner(m))
        value = value if source.lanes > 1 else value[..., None]
        seen = value.view(target.carrier)
        return seen if target.lanes > 1 else seen[..., 0][()]

    return run


@call_rule("tirx.call_extern", "tirx.call_pure_extern")
def _extern(c: Any, expr: ir.Call) -> Fn:
    name, parts = str(expr.args[0].value), [c.value(a) for a in expr.args[1:]]
    result, span = dtype_of(expr), expr.span

    def run(m: Machine) -> Any:
        function = m.options.externs.get(name)
        if function is None:
            raise UnsupportedError(
                f"the extern function {name} is C code; give its meaning with "
                f"externs={{{name!r}: f}}",
                span or m.span,
            )
        returned = function(*(part(m) for part in parts))
        return None if returned is None else narrow(returned, result)

    return run
