"""Expressions of CUDA source: C++ operators, function-style casts, functions of our headers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tvm import ir, sym
from tvm import tirx as T
from tvm.ir import prim

from tilelang.codegen.c_family import CFamilyPrinter, quoted
from tilelang.cuda.print_types import (
    CUDA_DIALECT,
    HEADERS,
    NUMERIC_FUNCTIONS,
    NUMERIC_OPERATORS,
    SUB_BYTE,
    WARP_FUNCTIONS,
    split_lanes,
)
from tilelang.errors import CodegenError
from tilelang.ir.expr import const_int, dtype_of, is_buffer

__all__ = ["CudaExpressions"]

_ATOM, _UNARY, _MUL, _ADD, _EQ = 13, 12, 11, 10, 7
_STRENGTH = {"==": 7, "!=": 7, "<": 8, "<=": 8, ">": 8, ">=": 8, "+": 10, "-": 10, "*": 11, "/": 11}
_NARROW = ("int8", "uint8", "int16", "uint16")
_PROMOTED = (
    T.Add, T.Sub, T.Mul, T.FloorDiv, T.FloorMod, T.LShift, T.RShift,
    T.BitwiseAnd, T.BitwiseOr, T.BitwiseXor, T.BitwiseNot,
)  # fmt: skip
_INT32 = range(-(2**31), 2**31)
_SPECIAL = {math.inf: "tl::infinity", -math.inf: "-tl::infinity"}


class CudaExpressions(CFamilyPrinter):
    """Prints expressions; remembers which headers they need."""

    def __init__(self) -> None:
        super().__init__(CUDA_DIALECT)
        self.headers: set[str] = set()
        self.analyzer = sym.Analyzer()
        self.block = (1, 1, 1)
        self._expr_rules.update(
            {
                prim.Broadcast: self._broadcast,
                prim.Ramp: self._ramp,
                prim.Shuffle: self._shuffle,
                prim.Let: self._let,
            }
        )

    # --- names ----------------------------------------------------------------------------

    def use(self, name: str) -> str:
        """``tl::name``; its header is included."""
        self.headers.add(HEADERS[name])
        return f"tl::{name}"

    def call(self, name: str, *args: str) -> tuple[str, int]:
        """A call of ``tl::name``."""
        return f"{self.use(name)}({', '.join(args)})", _ATOM

    def type(self, dtype: str) -> str:
        """Name of a type; vectors are ``tl::vec``."""
        element, lanes = split_lanes(dtype)
        if lanes > 1:
            return self._vector_type(element, lanes)
        name = super().type(element)
        if name.startswith("tl::"):
            self.use(name.removeprefix("tl::"))
        elif name.endswith("_t"):
            self.headers.add("common")
        return name

    def _vector_type(self, element: str, lanes: int) -> str:
        if element in SUB_BYTE:  # whole bytes
            return self.type(f"uint8x{lanes // 2}" if lanes > 2 else "uint8")
        return f"{self.use('vec')}<{self.type(element)}, {lanes}>"

    def storage_type(self, buffer: ir.Var) -> str:
        """Type of the elements of a buffer in memory."""
        name = dtype_of(buffer)
        return self.type("uint8") if name in SUB_BYTE else self.type(name)

    # --- constants ------------------------------------------------------------------------

    def _int(self, node: T.IntImm) -> tuple[str, int]:
        dtype, value = dtype_of(node), int(node.value)
        if dtype == "bool":
            return "true" if value else "false", _ATOM
        if dtype == "int32":
            if value == -(2**31):
                return "(-2147483647 - 1)", _ATOM
            return str(value), _ATOM if value >= 0 else _UNARY
        if dtype == "uint32":
            return f"{value % 2**32}u", _ATOM
        if dtype == "int64":
            text = "-9223372036854775807LL - 1" if value == -(2**63) else str(value)
            long = "LL" if value not in _INT32 and value != -(2**63) else ""
            return f"{self.type(dtype)}({text}{long})", _ATOM
        if dtype == "uint64":
            value %= 2**64
            return f"{self.type(dtype)}({value}{'ull' if value >= 2**31 else ''})", _ATOM
        return f"{self.type(dtype)}({value})", _ATOM

    def _float(self, node: T.FloatImm) -> tuple[str, int]:
        dtype, value = dtype_of(node), float(node.value)
        if math.isnan(value) or math.isinf(value):
            self.use("infinity")
            text = _SPECIAL.get(value, "tl::nan")
            own = _UNARY if value == -math.inf else _ATOM
            return (text, own) if dtype == "float32" else (f"{self.type(dtype)}({text})", _ATOM)
        if dtype == "float64":
            return repr(value), _ATOM if math.copysign(1, value) > 0 else _UNARY
        single = np.float32(value)
        if math.isinf(single):
            return self._float(T.FloatImm(dtype, float(single)))
        # The shortest text that reads back as the same float32.
        text = str(single) if "e" in str(single) or "." in str(single) else f"{single}.0"
        if dtype == "float32":
            return f"{text}f", _ATOM if math.copysign(1, value) > 0 else _UNARY
        return f"{self.type(dtype)}({text}f)", _ATOM

    # --- operators ------------------------------------------------------------------------

    def expr(self, node: Any, strength: int = 0) -> str:
        """The language computes on ``int`` what is narrower; the result is taken back."""
        if type(node) in _PROMOTED and dtype_of(node) in _NARROW:
            return f"{self.type(dtype_of(node))}({super().expr(node)})"
        return super().expr(node, strength)

    def _infix(self, symbol: str, own: int, a: Any, b: Any) -> str:
        return super()._infix(symbol, own, self._plain(a, b), self._plain(b, a))

    def _plain(self, node: Any, other: Any) -> Any:
        """A 64-bit constant beside a 64-bit operand needs no cast."""
        if isinstance(node, T.IntImm) and not isinstance(other, T.IntImm):
            value = int(node.value)
            if dtype_of(node) == "int64" and value in _INT32 and value != -(2**31):
                return T.IntImm("int32", value)
            if dtype_of(node) == "uint64" and 0 <= value < 2**31:
                return T.IntImm("uint32", value)
        return node

    def min_max(self, node: Any, kind: str) -> tuple[str, int]:
        """By a function, which evaluates its operands once and orders NaN."""
        return self._lanewise(kind, [node.a, node.b])

    def _floor(self, node: Any, kind: str) -> tuple[str, int]:
        """C's operator where neither operand is negative."""
        if self._non_negative(node.a) and self._non_negative(node.b):
            return self._infix("/" if kind == "div" else "%", _MUL, node.a, node.b), _MUL
        return self._lanewise(f"floor_{kind}", [node.a, node.b])

    def _non_negative(self, node: Any) -> bool:
        if dtype_of(node).startswith("uint"):
            return True
        if isinstance(node, T.IntImm):
            return int(node.value) >= 0
        if split_lanes(dtype_of(node))[1] > 1:
            return False
        if self.analyzer.const_int_bound(node).min_value >= 0:
            return True
        return bool(self.analyzer.can_prove(node >= 0))

    def _cast(self, node: T.Cast) -> tuple[str, int]:
        source, lanes = split_lanes(dtype_of(node.value))
        target = split_lanes(dtype_of(node))[0]
        if lanes > 1:
            inner = self._convert(source, target, "x")
            return self._map(inner, ["x"], [node.value])
        return self._convert(source, target, self.expr(node.value)), _ATOM

    def _convert(self, source: str, target: str, value: str) -> str:
        """``value`` as another scalar type; plain C++ where that means the same."""
        wide = ("float32", "float64")
        from_int = source.startswith(("int", "uint", "bool")) and source not in SUB_BYTE
        plain = (
            source == target
            or (target in wide and (from_int or source in wide))
            or (target == "float32" and not from_int and source not in SUB_BYTE)
            or (source == "float32" and target not in wide and not _is_int(target))
            or (from_int and _is_int(target) and target not in ("bool", *SUB_BYTE))
            or {source, target} in ({"int4", "int32"}, {"uint4", "int32"})
        )
        if plain:
            return f"{self.type(target)}({value})"
        return f"{self.use('cast')}<{self.type(target)}>({value})"

    # --- vectors --------------------------------------------------------------------------

    def _lanewise(self, function: str, args: list[Any]) -> tuple[str, int]:
        """``tl::function(args)``, over the lanes of vectors."""
        if all(split_lanes(dtype_of(arg))[1] == 1 for arg in args):
            return self.call(function, *(self.expr(arg) for arg in args))
        names = "xyz"[: len(args)]
        return self._map(f"{self.use(function)}({', '.join(names)})", list(names), args)

    def _map(self, body: str, names: list[str], args: list[Any]) -> tuple[str, int]:
        params = ", ".join(f"auto {name}" for name in names)
        values = [self.expr(arg) for arg in args]
        return self.call("map", f"[&]({params}) {{ return {body}; }}", *values)

    def _broadcast(self, node: prim.Broadcast) -> tuple[str, int]:
        return f"{self.use('broadcast')}<{const_int(node.lanes)}>({self.expr(node.value)})", _ATOM

    def _ramp(self, node: prim.Ramp) -> tuple[str, int]:
        base, stride = self.expr(node.base), self.expr(node.stride)
        return f"{self.use('ramp')}<{const_int(node.lanes)}>({base}, {stride})", _ATOM

    def _shuffle(self, node: prim.Shuffle) -> tuple[str, int]:
        lanes: list[str] = []
        for vector in node.vectors:
            count, text = split_lanes(dtype_of(vector))[1], self.expr(vector, _ATOM)
            lanes += [text] if count == 1 else [f"{text}[{lane}]" for lane in range(count)]
        picked = [lanes[int(const_int(index) or 0)] for index in node.indices]
        return (picked[0], _ATOM) if len(picked) == 1 else self.call("make_vec", *picked)

    def _let(self, node: prim.Let) -> tuple[str, int]:
        kind, value = self.type(dtype_of(node.var)), self.expr(node.value)
        name = self._names.of(node.var)
        return f"[&] {{ const {kind} {name} = {value}; return {self.expr(node.body)}; }}()", _ATOM

    def _conditional(self, cond: Any, a: Any, b: Any) -> tuple[str, int]:
        if split_lanes(dtype_of(cond))[1] > 1:
            return self.call("select", self.expr(cond), self.expr(a), self.expr(b))
        return super()._conditional(cond, a, b)

    # --- memory ---------------------------------------------------------------------------

    def _load(self, node: ir.TensorLoad) -> tuple[str, int]:
        kind, index = dtype_of(node.source), node.indices[0]
        if kind in SUB_BYTE:
            array = self._names.of(node.source)
            return f"{self.use('load_sub')}<{self.type(kind)}>({array}, {self.expr(index)})", _ATOM
        if isinstance(index, prim.Ramp) or split_lanes(dtype_of(index))[1] > 1:
            return self._gather(node.source, index)
        return self.element(node.source, node.indices), _ATOM

    def _gather(self, buffer: ir.Var, index: Any) -> tuple[str, int]:
        return self._map(f"{self._names.of(buffer)}[i]", ["i"], [index])

    def address(self, target: Any) -> tuple[str, int]:
        """Address of an element; that of a sub-byte element is its byte."""
        if is_buffer(target):
            return self._names.of(target), _ATOM
        buffer, index = target.source, target.indices[0]
        if dtype_of(buffer) in SUB_BYTE:
            index = T.floordiv(index, 2)
        if const_int(index) == 0:
            return self._names.of(buffer), _ATOM
        return f"&{self._names.of(buffer)}[{self.expr(index)}]", _UNARY

    def reinterpret(self, node: ir.Call) -> tuple[str, int]:
        """The same bits as another type, or a pointer as another."""
        value = node.args[0]
        pointers = [isinstance(side.ty, ir.PointerType) for side in (node, value)]
        if any(pointers):
            kind = self.pointer_type(node.ty) if pointers[0] else self.type(dtype_of(node))
            return f"reinterpret_cast<{kind}>({self.expr(value)})", _ATOM
        if dtype_of(node) == dtype_of(value):
            return self.expr(value, _UNARY), _UNARY
        return f"{self.use('bit_cast')}<{self.type(dtype_of(node))}>({self.expr(value)})", _ATOM

    # --- calls ----------------------------------------------------------------------------

    def special_call(self, name: str, node: ir.Call) -> tuple[str, int] | None:
        """Numeric operators, operations with attributes or constant arguments, functions."""
        if name.startswith("tl.num."):
            return self._numeric(name.removeprefix("tl.num."), node)
        if name == "tirx.address_of":
            return self.address(node.args[0])
        if name == "tirx.isnullptr":
            return f"{self.expr(node.args[0], _EQ + 1)} == nullptr", _EQ
        if name == "tl.access_ptr":
            return self._access(node)
        if name == "tl.__ldg":
            return self.call("ldg", self.address(node.args[0])[0])
        function = self.dialect.functions.get((name, ""))
        if function is not None and function.startswith("tl::"):
            args = list(node.args)
            if function.removeprefix("tl::") in WARP_FUNCTIONS:
                return self._warp(function.removeprefix("tl::"), args)
            return self._lanewise(function.removeprefix("tl::"), args)
        return super().special_call(name, node)

    def _warp(self, name: str, args: list[Any]) -> tuple[str, int]:
        """The mask of all lanes and the width of a warp are defaults; other masks read in hex."""
        shown = [self.expr(arg) for arg in args]
        if len(args) > 1 and dtype_of(args[-1]) == "uint32" and const_int(args[-1]) is not None:
            mask = int(args[-1].value) % 2**32
            shown[-1] = f"{mask:#x}u"
            if mask == 2**32 - 1:
                shown.pop()
                if name.startswith("shfl") and const_int(args[2]) == 32:
                    shown.pop()
        return self.call(name, *shown)

    def _access(self, node: ir.Call) -> tuple[str, int]:
        """``tl.access_ptr(element, offset, extent, mask)``: the address, some elements further."""
        element, offset = node.args[0], node.args[1]
        if const_int(offset) != 0:
            element = T.BufferLoad(element.source, [element.indices[0] + offset], node.span)
        return self.address(element)

    def _numeric(self, name: str, node: ir.Call) -> tuple[str, int]:
        args = list(node.args)
        kind = split_lanes(dtype_of(node))[0]
        operand = split_lanes(dtype_of(args[0]))[0]
        if name == "keep":
            return self.expr(args[0], _UNARY), _UNARY
        if name in NUMERIC_OPERATORS:
            symbol = NUMERIC_OPERATORS[name]
            return self._infix(symbol, _STRENGTH[symbol], *args), _STRENGTH[symbol]
        symbol = {"add": "+", "sub": "-", "mul": "*", "div": "/"}.get(name, "")
        # Floats never wrap, and unsigned int does so by itself.
        if symbol and (not _is_int(operand) or operand in ("uint32", "uint64")):
            return self._infix(symbol, _STRENGTH[symbol], *args), _STRENGTH[symbol]
        family, _, form = name.partition(".")
        if family in ("cast_int", "float_to_int", "float_to_nibble", "round"):
            if family == "round" and form:  # rounded to a narrow type, held in float32
                rounded = self._convert("float32", form, self.expr(args[0]))
                return f"float({rounded})", _ATOM
            if family != "round":
                return self._cast(prim.Cast(node.ty, args[0]))
        function = NUMERIC_FUNCTIONS.get(name, name)
        if function not in HEADERS:
            raise CodegenError(f"tl.num.{name} has no CUDA form for {kind}", node.span)
        return self._lanewise(function, args)

    def text(self, node: Any) -> str:
        """A string constant as a literal."""
        return quoted(str(node.value))


def _is_int(dtype: str) -> bool:
    return dtype.startswith(("int", "uint", "bool"))
