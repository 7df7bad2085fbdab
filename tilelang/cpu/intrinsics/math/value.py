"""Formulas as small graphs: operators on :class:`Value`, each shared part computed once.

A formula is written with Python operators on values and turned into one TVM expression by
:meth:`Value.emit`. A part that is used twice goes to a temporary, everything else is nested::

    x = Value.of(argument)
    square = x * x
    (square + square * 0.5).emit("llvm", temporary)  # t = x * x; t + t * 0.5

Values have the lanes of their operands, so that one formula serves scalar and vector code. Nodes
are built without folding. Integer ``+ - *`` become plain TVM nodes, which LLVM may assume not to
overflow (for unsigned types too): formulas use them only where the ranges exclude overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeAlias

import tvm
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.transform.numerics.ops import prim_type

__all__ = ["Number", "Temporary", "Value", "horner", "prim_type", "select"]

Number: TypeAlias = "int | float"
Operand: TypeAlias = "Value | int | float"
Temporary: TypeAlias = Callable[[ir.Expr], ir.Expr]

_SIGNED = {"float16": "int16", "float32": "int32", "float64": "int64"}


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
        if self.dtype == "bool":  # TVM compares bools as floats
            right = self._lift(other)
            return (self & ~right) | (~self & right)
        return self._binary(prim.BitwiseXor, other)

    def __lshift__(self, other: Operand) -> Value:
        return self._binary(prim.LShift, other)

    def __rshift__(self, other: Operand) -> Value:
        return self._binary(prim.RShift, other)

    def __invert__(self) -> Value:
        return Value(
            self.dtype, self.lanes, prim.Not if self.dtype == "bool" else prim.BitwiseNot, (self,)
        )

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
        if self.dtype.startswith("float"):
            return ~self.eq(other)  # TVM emits LLVM's *ordered* "not equal", false for NaN
        return self._binary(prim.NE, other, "bool")

    def to(self, dtype: str) -> Value:
        """Conversion by ``Cast``: the value must fit ``dtype``, floats round as in hardware."""
        if dtype == self.dtype:
            return self
        ty = prim_type(dtype, self.lanes)
        return Value(dtype, self.lanes, lambda e: prim.Cast(ty, e), (self,))

    def reinterpret(self, dtype: str) -> Value:
        """The same bits as another dtype of the same width."""
        if dtype == self.dtype:
            return self
        ty = prim_type(dtype, self.lanes)
        return Value(
            dtype, self.lanes, lambda e: ir.Call(_op("tirx.reinterpret"), [e], ret_ty=ty), (self,)
        )

    def bits(self) -> Value:
        """The bits of a float as a signed integer."""
        return self.reinterpret(_SIGNED[self.dtype])

    def magnitude(self) -> Value:
        """The value without its sign bit, of a float."""
        return self.intrinsic("fabs")

    def intrinsic(self, name: str, *others: Value) -> Value:
        """A float function that is one instruction: ``fabs``, ``sqrt``, ``trunc``, ``fma``, ..."""
        return _Intrinsic(self.dtype, self.lanes, partial(_intrinsic, name), (self, *others))

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
                [call(*(prim.Shuffle([v], [lane]) for v in vectors)) for lane in positions],
                positions,
            )

        # Each lane reads the operands, so a vector operand must be stored.
        pinned = tuple(arg.pinned() if lanes > 1 else arg for arg in (self, *others))
        return Value(self.dtype, lanes, build, pinned)

    def pinned(self) -> Value:
        """The value, stored in a temporary in any case."""
        return _Pinned(self.dtype, self.lanes, self.build, self.args)

    def emit(self, kind: str, temporary: Temporary) -> ir.Expr:
        """The expression for code of target ``kind``.

        ``temporary`` stores the expression of a part that is used more than once and returns
        what reads it back.
        """
        emission = _Emission(kind, temporary)
        emission.count(self)
        return emission.emit(self)


class _Pinned(Value):
    """A value that is always stored."""

    __slots__ = ()


class _Intrinsic(Value):
    """A call that each target spells differently: ``build`` takes the target kind first."""

    __slots__ = ()


# Instructions whose name in the C library differs; LLVM's names are the ones used here.
_C_NAMES = {"nearbyint": "rint"}


def _intrinsic(name: str, kind: str, *operands: ir.Expr) -> ir.Expr:
    ty = operands[0].ty
    if kind == "llvm":
        head: ir.Expr = _llvm_id(f"llvm.{name}")
        return ir.Call(_op("tirx.call_llvm_pure_intrin"), [head, *operands], ret_ty=ty)
    suffix = "" if str(ty.dtype).startswith("float64") else "f"
    function = ir.StringImm(_C_NAMES.get(name, name) + suffix)
    return ir.Call(_op("tirx.call_pure_extern"), [function, *operands], ret_ty=ty)


@lru_cache(maxsize=64)
def _llvm_id(name: str) -> ir.Expr:
    number = tvm.get_global_func("target.llvm_lookup_intrinsic_id")(name)
    assert number, f"LLVM has no {name}"
    return prim.IntImm("uint32", number)


class _Emission:
    """Turns a graph of values into one expression and its temporaries."""

    def __init__(self, kind: str, temporary: Temporary) -> None:
        self.kind, self.temporary = kind, temporary
        self._uses: dict[int, int] = {}
        self._done: dict[int, ir.Expr] = {}

    def count(self, value: Value) -> None:
        """Count how often each part is used."""
        seen = self._uses.get(id(value), 0)
        self._uses[id(value)] = seen + 1
        if not seen:
            for arg in value.args:
                self.count(arg)

    def emit(self, value: Value) -> ir.Expr:
        """The expression of ``value``, given those of its parts."""
        found = self._done.get(id(value))
        if found is not None:
            return found
        operands = [self.emit(arg) for arg in value.args]
        if isinstance(value, _Intrinsic):
            expr = value.build(self.kind, *operands)
        else:
            expr = value.build(*operands)
        shared = self._uses[id(value)] > 1 or isinstance(value, _Pinned)
        # Conditions are repeated instead: their operands are stored, and a stored condition
        # would leave the mask registers.
        if shared and value.dtype != "bool" and not _is_trivial(expr):
            expr = self.temporary(expr)
        self._done[id(value)] = expr
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
