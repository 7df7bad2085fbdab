"""Evaluation of scalar expressions.

Each expression node becomes one Python function of the machine; ``Code.value`` and ``Code.index``
build it, one small rule a node type.

Integer arithmetic has two modes. *Data* wraps at its width. *Index* arithmetic (over loop
variables, thread and block indices, shapes and constants, and everything inside the brackets of
an access) is exact: it is computed with Python ints and int64 arrays, and only wrapped where it
becomes data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.errors import UnsupportedError
from tilelang.interpreter import accesses, atomics, pointers  # noqa: F401  (they declare call rules)
from tilelang.interpreter.calls import if_then_else, intrinsic
from tilelang.interpreter.domain import some
from tilelang.interpreter.machine import Machine
from tilelang.interpreter.nodes import Fn, choose, dtype_of, lane_indices, stack_lanes
from tilelang.interpreter.numbers import Dtype, cast, dtype_named, round_float, wrap
from tilelang.interpreter.operators import operator, trunc_div, trunc_mod
from tilelang.interpreter.pointers import Pointer
from tilelang.interpreter.rules import CALL_RULES

__all__ = ["Expressions"]

_BINARY: dict[type, str] = {
    prim.Add: "add",
    prim.Sub: "sub",
    prim.Mul: "mul",
    prim.Div: "div",
    prim.Mod: "mod",
    prim.FloorDiv: "floordiv",
    prim.FloorMod: "floormod",
    prim.Max: "max",
    prim.Min: "min",
    prim.BitwiseAnd: "and",
    prim.BitwiseOr: "or",
    prim.BitwiseXor: "xor",
    prim.LShift: "shl",
    prim.RShift: "shr",
    prim.EQ: "eq",
    prim.NE: "ne",
    prim.LT: "lt",
    prim.LE: "le",
    prim.GT: "gt",
    prim.GE: "ge",
}
_COMPARISONS = (prim.EQ, prim.NE, prim.LT, prim.LE, prim.GT, prim.GE)


def _floor_div(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int:
        return a // b if b else 0
    return np.floor_divide(a, b)


def _floor_mod(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int:
        return a % b if b else 0
    return np.mod(a, b)


def _pick(numpy_function: Callable[[Any, Any], Any], python: Callable[[Any, Any], Any]) -> Any:
    def pick(a: Any, b: Any) -> Any:
        both = type(a) is int and type(b) is int
        return python(a, b) if both else numpy_function(a, b)

    return pick


_SHIFT_RIGHT = operator("shr", dtype_named("int64"))
#: Index arithmetic: exact on Python ints, int64 on arrays.
_EXACT: dict[type, Callable[[Any, Any], Any]] = {
    prim.Add: lambda a, b: a + b,
    prim.Sub: lambda a, b: a - b,
    prim.Mul: lambda a, b: a * b,
    prim.Div: lambda a, b: _as_index(trunc_div(np.int64(a), np.int64(b))),
    prim.Mod: lambda a, b: _as_index(trunc_mod(np.int64(a), np.int64(b))),
    prim.FloorDiv: _floor_div,
    prim.FloorMod: _floor_mod,
    prim.Max: _pick(np.maximum, max),
    prim.Min: _pick(np.minimum, min),
    prim.BitwiseAnd: lambda a, b: a & b,
    prim.BitwiseOr: lambda a, b: a | b,
    prim.BitwiseXor: lambda a, b: a ^ b,
    prim.RShift: lambda a, b: _as_index(_SHIFT_RIGHT(np.int64(a), np.int64(b))),
}


def _as_index(value: Any) -> Any:
    """A data value as an index: a Python int, or an int64 array."""
    return int(value) if np.ndim(value) == 0 else value.astype(np.int64)


class Expressions:
    """Builds functions that evaluate expressions."""

    def __init__(self) -> None:
        self.index_vars: set[ir.Var] = set()
        self.thread_vars: set[ir.Var] = set()
        self.tile_functions: dict[Any, Any] = {}  # of the operands of tile ops
        self._index_memo: dict[ir.Expr, bool] = {}
        self._first_seen: dict[ir.Var, ir.Var] = {}

    def var(self, var: ir.Var) -> ir.Var:
        """One Python object for all uses of a variable, so that tables find it by identity."""
        return self._first_seen.setdefault(var, var)

    def value(self, expr: ir.Expr) -> Fn:
        """A function that gives ``expr`` as data of its dtype."""
        if self.is_index(expr):
            return self._wrapped(self.index(expr), dtype_of(expr))
        rule = _VALUE_RULES.get(type(expr))
        if rule is None:
            raise UnsupportedError(
                f"the interpreter has no meaning for {type(expr).__name__}", expr.span
            )
        return rule(self, expr)

    def index(self, expr: ir.Expr) -> Fn:
        """A function that gives the integer ``expr`` without wrapping: an int or int64 array."""
        kind = type(expr)
        if kind is prim.IntImm:
            number = int(expr.value)
            return lambda m: number
        if kind is ir.Var and expr in self.index_vars:
            var = self.var(expr)
            return lambda m: m.read(var)
        if kind is prim.Cast and dtype_of(expr.value).is_int and _is_wide_int(dtype_of(expr)):
            return self.index(expr.value)
        choice = _CHOICES.get(_name(expr))
        if choice is not None and dtype_of(expr).lanes == 1:
            return choice(self, expr, self.index)
        if kind in _EXACT and dtype_of(expr).is_int and dtype_of(expr).lanes == 1:
            apply, a, b = _EXACT[kind], self.index(expr.a), self.index(expr.b)
            return lambda m: apply(a(m), b(m))
        inner = _VALUE_RULES[kind](self, expr) if kind in _VALUE_RULES else self.value(expr)
        return lambda m: _as_index(inner(m))

    def is_index(self, expr: ir.Expr) -> bool:
        """Whether ``expr`` is index arithmetic: made of indices, shapes and constants only."""
        if type(expr) is prim.IntImm:  # equal to constants of other dtypes, as a key
            return _is_wide_int(dtype_of(expr))
        found = self._index_memo.get(expr)
        if found is None:
            found = self._index_memo[expr] = self._find_index(expr)
        return found

    def _find_index(self, expr: ir.Expr) -> bool:
        kind = type(expr)
        if kind is ir.Var:
            return expr in self.index_vars
        if kind is prim.Cast:
            return _is_wide_int(dtype_of(expr)) and self.is_index(expr.value)
        if not _is_wide_int(dtype_of(expr)):
            return False
        if kind in _EXACT:
            return self.is_index(expr.a) and self.is_index(expr.b)
        if kind is prim.Select:
            return self.is_index(expr.true_value) and self.is_index(expr.false_value)
        if _name(expr) in _CHOICES:
            return self.is_index(expr.args[1]) and self.is_index(expr.args[2])
        return False

    @staticmethod
    def _wrapped(index: Fn, dtype: Dtype) -> Fn:
        bits, carrier = dtype.bits, dtype.carrier.type
        half, full = 1 << (bits - 1), 1 << bits

        def run(m: Machine) -> Any:
            value = index(m)
            if type(value) is int:
                return carrier(value if -half <= value < half else (value + half) % full - half)
            return value.astype(carrier)

        return run

    def binding(self, var: ir.Var, value: ir.Expr) -> Fn:
        """A function that evaluates ``value`` and binds it to ``var``."""
        var = self.var(var)
        if self.is_index(value):
            self.index_vars.add(var)
            evaluate = self.index(value)
        else:
            evaluate = self.value(value)
        return lambda m: m.assign(var, evaluate(m))

    def condition(self, expr: ir.Expr) -> Fn:
        """A function that gives a bool or bool array."""
        inner = self.value(expr)
        if dtype_of(expr).kind == "b":
            return inner
        return lambda m: inner(m) != 0

    def pointer(self, expr: ir.Expr) -> Callable[[Machine], Pointer]:
        """A function that gives the address ``expr``."""
        inner = self.value(expr)
        return lambda m: pointers.as_pointer(inner(m))

    def where(self, load: ir.TensorLoad | T.BufferStore) -> Callable[[Machine], list[Any]]:
        """A function that gives the indices of an access."""
        parts = [self.index(i) for i in load.indices]
        return lambda m: [part(m) for part in parts]


def _is_wide_int(dtype: Dtype) -> bool:
    return dtype.kind == "i" and dtype.bits >= 32 and dtype.lanes == 1


def _constant(c: Expressions, expr: prim.IntImm) -> Fn:
    dtype = dtype_of(expr)
    number = int(expr.value)
    if dtype.kind == "u":
        number %= 1 << dtype.bits
    value = dtype.carrier.type(number)
    return lambda m: value


def _float_constant(c: Expressions, expr: prim.FloatImm) -> Fn:
    value = round_float(np.float64(expr.value), dtype_of(expr))
    return lambda m: value


def _string(c: Expressions, expr: ir.StringImm) -> Fn:
    text = str(expr.value)
    return lambda m: text


def _variable(c: Expressions, expr: ir.Var) -> Fn:
    if isinstance(expr.ty, T.BufferType):
        raise UnsupportedError(f"buffer {expr.name} is used as a number; index it", expr.span)
    var, lanes = c.var(expr), 1 if dtype_of(expr).lanes > 1 else 0
    return lambda m: m.read(var, lanes)


def _binary(c: Expressions, expr: Any) -> Fn:
    kind, dtype = type(expr), dtype_of(expr.a)
    if kind in _COMPARISONS and c.is_index(expr.a) and c.is_index(expr.b):
        a, b = c.index(expr.a), c.index(expr.b)
    else:
        a, b = c.value(expr.a), c.value(expr.b)
    apply = operator(_BINARY[kind], dtype)
    return lambda m: apply(a(m), b(m))


def _bitwise_not(c: Expressions, expr: prim.BitwiseNot) -> Fn:
    a, dtype = c.value(expr.a), dtype_of(expr)
    return lambda m: wrap(~a(m), dtype)


def _and(c: Expressions, expr: prim.And) -> Fn:
    a, b = c.condition(expr.a), c.condition(expr.b)

    def run(m: Machine) -> Any:
        left = a(m)
        if not some(left):
            return left
        with m.masked(left):  # as in Python: the right side only where the left holds
            return left & b(m)

    return run


def _or(c: Expressions, expr: prim.Or) -> Fn:
    a, b = c.condition(expr.a), c.condition(expr.b)

    def run(m: Machine) -> Any:
        left = a(m)
        if np.all(left):
            return left
        with m.masked(~np.asarray(left)[()]):
            return left | b(m)

    return run


def _not(c: Expressions, expr: prim.Not) -> Fn:
    a = c.condition(expr.a)
    return lambda m: np.logical_not(a(m))


def _cast(c: Expressions, expr: prim.Cast) -> Fn:
    inner, source, target = c.value(expr.value), dtype_of(expr.value), dtype_of(expr)
    if source.name == target.name:
        return inner
    return lambda m: cast(inner(m), source.scalar, target.scalar)


def _select(c: Expressions, expr: prim.Select, arm: Callable[[ir.Expr], Fn]) -> Fn:
    """Both sides are evaluated."""
    condition = c.condition(expr.condition)
    a, b = arm(expr.true_value), arm(expr.false_value)
    whole = dtype_of(expr).lanes > 1 and dtype_of(expr.condition).lanes == 1
    return lambda m: choose(condition(m), a(m), b(m), whole)


def _let(c: Expressions, expr: prim.Let) -> Fn:
    bind = c.binding(expr.var, expr.value)
    body = c.value(expr.body)

    def run(m: Machine) -> Any:
        bind(m)
        return body(m)

    return run


def _load(c: Expressions, expr: ir.TensorLoad) -> Fn:
    buffer, span = c.var(expr.source), expr.span
    if any(type(i) is prim.Ramp for i in expr.indices):
        return _vector_load(c, expr)
    where = c.where(expr)
    return lambda m: accesses.load(m, m.view(buffer), where(m), span or m.span)


def _vector_load(c: Expressions, expr: ir.TensorLoad) -> Fn:
    lanes = [
        c.value(T.BufferLoad(expr.source, lane_indices(expr.indices, lane), expr.span))
        for lane in range(dtype_of(expr).lanes)
    ]
    return lambda m: stack_lanes([lane(m) for lane in lanes])


def _ramp(c: Expressions, expr: prim.Ramp) -> Fn:
    dtype = dtype_of(expr)
    lanes = [c.value(expr.base + expr.stride * lane) for lane in range(dtype.lanes)]
    return lambda m: stack_lanes([lane(m) for lane in lanes])


def _broadcast(c: Expressions, expr: prim.Broadcast) -> Fn:
    inner, lanes = c.value(expr.value), dtype_of(expr).lanes
    return lambda m: np.repeat(np.asarray(inner(m))[..., None], lanes, axis=-1)


def _shuffle(c: Expressions, expr: prim.Shuffle) -> Fn:
    vectors = [(c.value(v), dtype_of(v).lanes > 1) for v in expr.vectors]
    order = [int(i) for i in expr.indices]

    def run(m: Machine) -> Any:
        lanes: list[Any] = []
        for vector, wide in vectors:
            value = vector(m)
            lanes += list(np.moveaxis(value, -1, 0)) if wide else [value]
        chosen = [lanes[i] for i in order]
        return chosen[0] if len(chosen) == 1 else stack_lanes(chosen)

    return run


def _call(c: Expressions, expr: ir.Call) -> Fn:
    name = _name(expr)
    if name in _CHOICES:
        return _CHOICES[name](c, expr, c.value)
    return CALL_RULES.get(name, intrinsic)(c, expr)


def _name(expr: ir.Expr) -> str:
    """The op of a call; for other nodes something that tells a choice from the rest."""
    if isinstance(expr, ir.Call):
        return expr.op.name if isinstance(expr.op, ir.Op) else ""
    return "select" if type(expr) is prim.Select else ""


#: Expressions that pick one of two values, as data or as an index.
_CHOICES: dict[str, Callable[[Any, Any, Any], Fn]] = {
    "select": _select,
    "prim.if_then_else": if_then_else,
    "tirx.if_then_else": if_then_else,
}


_VALUE_RULES: dict[type, Callable[[Any, Any], Fn]] = {
    prim.IntImm: _constant,
    prim.FloatImm: _float_constant,
    ir.StringImm: _string,
    ir.Var: _variable,
    **dict.fromkeys(_BINARY, _binary),
    prim.BitwiseNot: _bitwise_not,
    prim.And: _and,
    prim.Or: _or,
    prim.Not: _not,
    prim.Cast: _cast,
    prim.Select: lambda c, expr: _select(c, expr, c.value),
    prim.Let: _let,
    prim.Ramp: _ramp,
    prim.Broadcast: _broadcast,
    prim.Shuffle: _shuffle,
    ir.TensorLoad: _load,
    ir.Call: _call,
}
