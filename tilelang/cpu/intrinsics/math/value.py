"""Formulas as small graphs: operators on :class:`Value`, each shared part bound once.

A formula is written with Python operators on values and turned into one TVM expression by
:meth:`Value.expr`. A part that is used twice becomes a ``Let``; everything else is nested::

    x = Value.of(argument)          # x : float32
    square = x * x
    (square + square * 0.5).expr()  # Let(t, x * x, t + t * 0.5)

Values have the lanes of their operands, so that one formula serves scalar and vector code. Nodes
are built without folding. Integer ``+ - *`` become plain TVM nodes, which LLVM may assume not to
overflow (for unsigned types too): formulas use them only where the ranges exclude overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

__all__ = ["Number", "Value", "horner", "prim_type", "select"]

Number: TypeAlias = "int | float"
Operand: TypeAlias = "Value | int | float"

_SIGNED = {"float16": "int16", "float32": "int32", "float64": "int64"}


@lru_cache(maxsize=512)
def prim_type(dtype: str, lanes: int = 1) -> ir.PrimType:
    """The TVM type of ``lanes`` elements of ``dtype``."""
    return ir.PrimType(dtype if lanes == 1 else f"{dtype}x{lanes}")


@lru_cache(maxsize=4096)
def _constant(dtype: str, lanes: int, text: str) -> ir.Expr:
    if dtype.startswith("float"):
        node: ir.Expr = prim.FloatImm(prim_type(dtype), float.fromhex(text))
    else:
        node = prim.IntImm(prim_type(dtype), int(text))
    return node if lanes == 1 else prim.Broadcast(node, T.IntImm("int32", lanes))


@lru_cache(maxsize=64)
def _op(name: str) -> ir.Op:
    return ir.Op.get(name)


class Value:
    """One node of a formula.

    Attributes
    ----------
    dtype : str
        Element type.
    lanes : int
        1, or the vector length.
    """

    __slots__ = ("args", "build", "dtype", "lanes")

    def __init__(
        self, dtype: str, lanes: int, build: Callable[..., ir.Expr], args: tuple[Value, ...] = ()
    ) -> None:
        self.dtype, self.lanes, self.build, self.args = dtype, lanes, build, args

    @staticmethod
    def of(expr: ir.Expr) -> Value:
        """An existing expression as an operand."""
        kind = expr.ty.dtype
        lanes = kind.lanes
        name = str(kind) if lanes == 1 else str(kind.with_lanes(1))
        return Value(name, lanes, lambda: expr)

    def const(self, number: Number, dtype: str | None = None) -> Value:
        """A constant with the lanes (and by default the dtype) of this value."""
        kind = dtype or self.dtype
        text = float(number).hex() if kind.startswith("float") else str(int(number))
        return Value(kind, self.lanes, lambda: _constant(kind, self.lanes, text))

    def _lift(self, other: Operand) -> Value:
        if not isinstance(other, Value):
            return self.const(other)
        assert other.dtype == self.dtype, f"{self.dtype} with {other.dtype}"
        return other

    def _binary(self, node: Callable[..., ir.Expr], other: Operand, result: str = "") -> Value:
        return Value(result or self.dtype, self.lanes, node, (self, self._lift(other)))

    def __add__(self, other: Operand) -> Value:
        return self._binary(prim.Add, other)

    def __radd__(self, other: Number) -> Value:
        return self._lift(other) + self

    def __sub__(self, other: Operand) -> Value:
        return self._binary(prim.Sub, other)

    def __rsub__(self, other: Number) -> Value:
        return self._lift(other) - self

    def __mul__(self, other: Operand) -> Value:
        return self._binary(prim.Mul, other)

    def __rmul__(self, other: Number) -> Value:
        return self._lift(other) * self

    def __truediv__(self, other: Operand) -> Value:
        """Quotient of floats; of integers, rounded toward zero."""
        return self._binary(prim.Div, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._lift(other) / self

    def __mod__(self, other: Operand) -> Value:
        """Remainder of the division toward zero."""
        return self._binary(prim.Mod, other)

    def __and__(self, other: Operand) -> Value:
        return self._binary(prim.And if self.dtype == "bool" else prim.BitwiseAnd, other)

    def __or__(self, other: Operand) -> Value:
        return self._binary(prim.Or if self.dtype == "bool" else prim.BitwiseOr, other)

    def __xor__(self, other: Operand) -> Value:
        if self.dtype == "bool":
            return self._binary(prim.NE, other)
        return self._binary(prim.BitwiseXor, other)

    def __lshift__(self, other: Operand) -> Value:
        return self._binary(prim.LShift, other)

    def __rshift__(self, other: Operand) -> Value:
        return self._binary(prim.RShift, other)

    def __invert__(self) -> Value:
        return Value(self.dtype, self.lanes, prim.Not if self.dtype == "bool" else prim.BitwiseNot, (self,))

    def __lt__(self, other: Operand) -> Value:
        return self._binary(prim.LT, other, "bool")

    def __le__(self, other: Operand) -> Value:
        return self._binary(prim.LE, other, "bool")

    def __gt__(self, other: Operand) -> Value:
        return self._binary(prim.GT, other, "bool")

    def __ge__(self, other: Operand) -> Value:
        return self._binary(prim.GE, other, "bool")

    def eq(self, other: Operand) -> Value:
        """Lanewise equality."""
        return self._binary(prim.EQ, other, "bool")

    def ne(self, other: Operand) -> Value:
        """Lanewise inequality; ``x.ne(x)`` finds NaN."""
        return self._binary(prim.NE, other, "bool")

    def to(self, dtype: str) -> Value:
        """Conversion by TVM's ``Cast``: the value must fit ``dtype``, floats round as in hardware."""
        if dtype == self.dtype:
            return self
        ty = prim_type(dtype, self.lanes)
        return Value(dtype, self.lanes, lambda e: prim.Cast(ty, e), (self,))

    def reinterpret(self, dtype: str) -> Value:
        """The same bits as another dtype of the same width."""
        if dtype == self.dtype:
            return self
        ty = prim_type(dtype, self.lanes)
        return Value(dtype, self.lanes, lambda e: ir.Call(_op("tirx.reinterpret"), [e], ret_ty=ty), (self,))

    def bits(self) -> Value:
        """The bits of a float as a signed integer."""
        return self.reinterpret(_SIGNED[self.dtype])

    def magnitude(self) -> Value:
        """The value without its sign bit, of a float."""
        return self.intrinsic("tirx.fabs")

    def intrinsic(self, name: str) -> Value:
        """A unary operator of TVM that its own lowering maps to an instruction."""
        ty = prim_type(self.dtype, self.lanes)
        return Value(self.dtype, self.lanes, lambda e: ir.Call(_op(name), [e], ret_ty=ty), (self,))

    def libm(self, name: str, *others: Value) -> Value:
        """A call of the C library for each lane."""
        ty, lanes = prim_type(self.dtype), self.lanes

        def call(*operands: ir.Expr) -> ir.Expr:
            return ir.Call(_op("tirx.call_pure_extern"), [ir.StringImm(name), *operands], ret_ty=ty)

        def build(*vectors: ir.Expr) -> ir.Expr:
            if lanes == 1:
                return call(*vectors)
            positions = [T.IntImm("int32", lane) for lane in range(lanes)]
            return prim.Shuffle(
                [call(*(prim.Shuffle([v], [lane]) for v in vectors)) for lane in positions], positions
            )

        # Each lane reads the operands, so a vector operand must be bound.
        pinned = tuple(arg.pinned() if lanes > 1 else arg for arg in (self, *others))
        return Value(self.dtype, lanes, build, pinned)

    def pinned(self) -> Value:
        """The value, bound by a ``Let`` in any case."""
        return _Pinned(self.dtype, self.lanes, self.build, self.args)

    def expr(self) -> ir.Expr:
        """The expression, with a ``Let`` for each part that is used more than once."""
        uses: dict[int, int] = {}
        _count(self, uses)
        done: dict[int, ir.Expr] = {}
        lets: list[tuple[ir.Var, ir.Expr]] = []
        result = _emit(self, uses, done, lets)
        for var, value in reversed(lets):
            result = prim.Let(var, value, result)
        return result


class _Pinned(Value):
    """A value that is always bound."""

    __slots__ = ()


def _count(value: Value, uses: dict[int, int]) -> None:
    seen = uses.get(id(value), 0)
    uses[id(value)] = seen + 1
    if not seen:
        for arg in value.args:
            _count(arg, uses)


def _emit(
    value: Value, uses: dict[int, int], done: dict[int, ir.Expr], lets: list[tuple[ir.Var, ir.Expr]]
) -> ir.Expr:
    found = done.get(id(value))
    if found is not None:
        return found
    expr = value.build(*[_emit(arg, uses, done, lets) for arg in value.args])
    shared = uses[id(value)] > 1 or isinstance(value, _Pinned)
    if shared and not _is_trivial(expr):
        var = T.Var("t", expr.ty)
        lets.append((var, expr))
        expr = var
    done[id(value)] = expr
    return expr


def _is_trivial(expr: ir.Expr) -> bool:
    if isinstance(expr, prim.Broadcast):
        expr = expr.value
    return isinstance(expr, (ir.Var, prim.IntImm, prim.FloatImm))


def select(condition: Value, if_true: Operand, if_false: Operand) -> Value:
    """``if_true`` where the condition holds, else ``if_false``; both are computed."""
    like = if_true if isinstance(if_true, Value) else if_false
    assert isinstance(like, Value), "one arm must be a value"
    arms = (like._lift(if_true), like._lift(if_false))
    return Value(like.dtype, like.lanes, prim.Select, (condition, *arms))


def horner(x: Value, coefficients: tuple[float, ...]) -> Value:
    """The polynomial with ``coefficients`` (constant term first) at ``x``."""
    result: Value = x.const(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result
