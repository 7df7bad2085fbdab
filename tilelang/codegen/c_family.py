"""The printer of C-like source: one base, a small dialect record a backend.

It prints lowered functions: flat buffers, plain loops, scalar expressions. What a language spells
differently (type names, storage qualifiers, functions) is data of its :class:`Dialect`; constructs
only one language has are methods of its subclass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.codegen.names import Names
from tilelang.errors import CodegenError
from tilelang.ir.expr import const_int, dtype_of

__all__ = ["CFamilyPrinter", "Dialect", "quoted"]

# Binding strength of operators in C, tighter is higher.
_ATOM, _UNARY, _MUL, _ADD, _SHIFT, _REL, _EQ, _BAND, _BXOR, _BOR, _AND, _OR, _COND = range(
    13, 0, -1
)
_BINARY: Mapping[type, tuple[str, int]] = {
    T.Add: ("+", _ADD),
    T.Sub: ("-", _ADD),
    T.Mul: ("*", _MUL),
    T.Div: ("/", _MUL),
    T.Mod: ("%", _MUL),
    T.LT: ("<", _REL),
    T.LE: ("<=", _REL),
    T.GT: (">", _REL),
    T.GE: (">=", _REL),
    T.EQ: ("==", _EQ),
    T.NE: ("!=", _EQ),
    T.And: ("&&", _AND),
    T.Or: ("||", _OR),
    T.LShift: ("<<", _SHIFT),
    T.RShift: (">>", _SHIFT),
    T.BitwiseAnd: ("&", _BAND),
    T.BitwiseXor: ("^", _BXOR),
    T.BitwiseOr: ("|", _BOR),
}
_KEYWORDS = [
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "bool",
    "true",
    "false",
    "class",
    "namespace",
    "template",
    "this",
    "new",
    "delete",
    "operator",
    "private",
    "public",
]


@dataclass(frozen=True)
class Dialect:
    """How one C-like language spells things.

    Parameters
    ----------
    name : str
    types : mapping
        Scalar dtype to type name.
    functions : mapping
        ``(op name, dtype of the result)`` or ``(op name, "")`` to a function name.
    preamble : str
        Text before the first function.
    function_prefix : str
        Before the return type of a function.
    restrict : str
        Qualifier of pointers that do not alias.
    reserved : tuple of str
        Further names that generated code must not use.
    """

    name: str
    types: Mapping[str, str]
    functions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    preamble: str = ""
    function_prefix: str = ""
    restrict: str = "restrict"
    reserved: tuple[str, ...] = ()


class CFamilyPrinter:
    """Prints lowered functions as text of one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._lines: list[str] = []
        self._depth = 0
        self._names = Names(())
        self._expr_rules: dict[type, Callable[[Any], tuple[str, int]]] = {
            ir.Var: lambda e: (self._names.of(e), _ATOM),
            T.IntImm: self._int,
            T.FloatImm: self._float,
            ir.StringImm: lambda e: (quoted(str(e.value)), _ATOM),
            ir.TensorLoad: self._load,
            T.Cast: self._cast,
            T.Min: lambda e: self.min_max(e, "min"),
            T.Max: lambda e: self.min_max(e, "max"),
            T.FloorDiv: lambda e: self._floor(e, "div"),
            T.FloorMod: lambda e: self._floor(e, "mod"),
            T.Select: lambda e: self._conditional(e.condition, e.true_value, e.false_value),
            T.Not: lambda e: (f"!{self.expr(e.a, _UNARY)}", _UNARY),
            T.BitwiseNot: lambda e: (f"~{self.expr(e.a, _UNARY)}", _UNARY),
            ir.Call: self._call,
        }
        self._stmt_rules: dict[type, Callable[[Any], None]] = {
            T.SeqStmt: self._seq,
            T.For: self._for,
            T.While: self._while,
            T.IfThenElse: self._if,
            T.BufferStore: self._store,
            T.Bind: self._bind,
            T.AllocBuffer: self._alloc,
            T.DeclBuffer: self._declare,
            T.Evaluate: self._evaluate,
            T.Return: lambda s: self.line(f"return {self.expr(s.value)};"),
            T.Break: lambda s: self.line("break;"),
            T.Continue: lambda s: self.line("continue;"),
            T.AttrStmt: lambda s: self.stmt(s.body),
        }

    # --- output ---------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Append one line at the current depth."""
        self._lines.append("  " * self._depth + text if text else "")

    def module(self, functions: Mapping[str, T.PrimFunc]) -> str:
        """Print functions in order, with the preamble of the dialect."""
        self._lines = [self.dialect.preamble] if self.dialect.preamble else []
        for name, func in functions.items():
            self.function(name, func)
        return "\n".join(self._lines) + "\n"

    def function(self, name: str, func: T.PrimFunc) -> None:
        """Print one function."""
        self._names = Names([*self._reserved, name])
        params = ", ".join(self.parameter(param, func) for param in func.params)
        returns = (
            "void"
            if func.ret_type is None or not self._returns(func)
            else self.type(str(func.ret_type.dtype))
        )
        self.line("")
        self.line(f"{self.dialect.function_prefix}{returns} {name}({params}) {{")
        self._depth += 1
        self.stmt(func.body)
        self._depth -= 1
        self.line("}")

    @property
    def _reserved(self) -> list[str]:
        return [*_KEYWORDS, *self.dialect.reserved]

    def _returns(self, func: T.PrimFunc) -> bool:
        return isinstance(func.ret_type, ir.PrimType) and str(func.ret_type.dtype) != "void"

    def parameter(self, param: ir.Var, func: T.PrimFunc) -> str:
        """Declaration of one parameter."""
        name = self._names.of(param)
        if isinstance(param.ty, ir.PointerType):
            return f"{self.pointer_type(param.ty)} {self.dialect.restrict} {name}"
        return f"{self.type(dtype_of(param))} {name}"

    # --- types ----------------------------------------------------------------------------

    def type(self, dtype: str) -> str:
        """Name of a scalar type."""
        name = self.dialect.types.get(dtype)
        if name is None:
            raise CodegenError(
                f"dtype {dtype} has no {self.dialect.name} type; cast it to one that has"
            )
        return name

    def pointer_type(self, pointer: ir.PointerType) -> str:
        """Name of a pointer type."""
        element = pointer.element_type
        inner = self.type(str(element.dtype)) if isinstance(element, ir.PrimType) else "void"
        return f"{inner}*"

    # --- expressions ----------------------------------------------------------------------

    def expr(self, node: Any, strength: int = 0) -> str:
        """Text of an expression, in parentheses if it binds weaker than ``strength``."""
        rule = self._expr_rules.get(type(node))
        if rule is not None:
            text, own = rule(node)
        elif type(node) in _BINARY:
            symbol, own = _BINARY[type(node)]
            text = self._infix(symbol, own, node.a, node.b)
        else:
            raise CodegenError(
                f"cannot print {type(node).__name__} as {self.dialect.name}: {node}", node.span
            )
        return f"({text})" if own < strength else text

    def _infix(self, symbol: str, own: int, a: Any, b: Any) -> str:
        # && inside || and bit operators next to arithmetic are legal but read badly (and warn).
        tight = own if own in (_MUL, _ADD) else own + 1
        if (own <= _BAND and own >= _BOR) or own == _SHIFT:
            tight = _UNARY
        return f"{self.expr(a, tight)} {symbol} {self.expr(b, max(tight, own + 1))}"

    def _int(self, node: T.IntImm) -> tuple[str, int]:
        dtype, value = dtype_of(node), int(node.value)
        if dtype == "bool":
            return str(int(value != 0)), _ATOM
        if dtype == "int64":
            text = "INT64_MIN" if value == -(2**63) else f"{value}LL"
            return text, _ATOM if value >= 0 else _UNARY
        if dtype == "uint64":
            return f"{value % 2**64}ULL", _ATOM
        if dtype == "int32":
            text = "INT32_MIN" if value == -(2**31) else str(value)
            return text, _ATOM if value >= 0 else _UNARY
        if dtype == "uint32":
            return f"{value % 2**32}u", _ATOM
        return f"({self.type(dtype)}){value}", _UNARY

    def _float(self, node: T.FloatImm) -> tuple[str, int]:
        dtype, value = dtype_of(node), float(node.value)
        if math.isnan(value) or math.isinf(value):
            text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
            return f"({self.type(dtype)}){text}", _UNARY
        text = repr(value)
        if dtype == "float64":
            return text, _ATOM if value >= 0 else _UNARY
        if dtype == "float32":
            return f"{text}f", _ATOM if value >= 0 else _UNARY
        return f"({self.type(dtype)}){text}f", _UNARY

    def _load(self, node: ir.TensorLoad) -> tuple[str, int]:
        return self.element(node.source, node.indices), _ATOM

    def element(self, buffer: ir.Var, indices: Any) -> str:
        """Text of one element of a flat buffer."""
        assert len(indices) == 1, "the printer takes flat buffers"
        return f"{self._names.of(buffer)}[{self.expr(indices[0])}]"

    def _cast(self, node: T.Cast) -> tuple[str, int]:
        if dtype_of(node) == "bool":
            return f"{self.expr(node.value, _EQ + 1)} != 0", _EQ
        return f"({self.type(dtype_of(node))}){self.expr(node.value, _UNARY)}", _UNARY

    def min_max(self, node: Any, kind: str) -> tuple[str, int]:
        """Minimum or maximum; the operands are evaluated twice."""
        symbol = "<" if kind == "min" else ">"
        a, b = self.expr(node.a, _REL + 1), self.expr(node.b, _REL + 1)
        return f"{a} {symbol} {b} ? {a} : {b}", _COND

    def _floor(self, node: Any, kind: str) -> tuple[str, int]:
        """Floor division; C truncates, which is the same for operands known non-negative."""
        unsigned = dtype_of(node).startswith("uint")
        if unsigned:
            symbol = "/" if kind == "div" else "%"
            return self._infix(symbol, _MUL, node.a, node.b), _MUL
        suffix = "64" if dtype_of(node) == "int64" else "32"
        return f"tl_floor{kind}{suffix}({self.expr(node.a)}, {self.expr(node.b)})", _ATOM

    def _conditional(self, cond: Any, a: Any, b: Any) -> tuple[str, int]:
        return (
            f"{self.expr(cond, _OR + 1)} ? {self.expr(a, _COND + 1)} : {self.expr(b, _COND)}",
            _COND,
        )

    def _call(self, node: ir.Call) -> tuple[str, int]:
        name = node.op.name if isinstance(node.op, ir.Op) else ""
        special = self.special_call(name, node)
        if special is not None:
            return special
        dtype = "" if isinstance(node.ty, ir.PointerType) else dtype_of(node)
        function = self.dialect.functions.get((name, dtype)) or self.dialect.functions.get(
            (name, "")
        )
        if function is None:
            raise CodegenError(
                f"{name.removeprefix('tirx.')} has no {self.dialect.name} form for {dtype}",
                node.span,
            )
        return f"{function}({', '.join(self.expr(arg) for arg in node.args)})", _ATOM

    def special_call(self, name: str, node: ir.Call) -> tuple[str, int] | None:
        """Calls that are no plain function; subclasses add theirs and fall back to this."""
        args = node.args
        if name == "prim.if_then_else":
            return self._conditional(*args)
        if name in ("tirx.call_extern", "tirx.call_pure_extern"):
            return f"{args[0].value}({', '.join(self.expr(arg) for arg in args[1:])})", _ATOM
        if name == "tirx.buffer_data":
            return self._names.of(args[0]), _ATOM
        if name == "tirx.address_of":
            return f"&{self.expr(args[0], _UNARY)}", _UNARY
        if name == "tirx.handle_add_byte_offset":
            return f"((char*){self.expr(args[0], _UNARY)} + {self.expr(args[1], _ADD + 1)})", _ATOM
        if name == "tirx.reinterpret":
            return self.reinterpret(node)
        if name == "prim.likely":
            return self.expr(args[0], _UNARY), _UNARY
        return None

    def reinterpret(self, node: ir.Call) -> tuple[str, int]:
        """The same bits as another type."""
        raise CodegenError(f"{self.dialect.name} has no reinterpretation of bits", node.span)

    # --- statements -----------------------------------------------------------------------

    def stmt(self, node: Any) -> None:
        """Print a statement."""
        rule = self._stmt_rules.get(type(node))
        if rule is None:
            raise CodegenError(
                f"cannot print {type(node).__name__} as {self.dialect.name}", node.span
            )
        rule(node)

    def _block(self, head: str, body: Any, tail: str = "}") -> None:
        self.line(f"{head} {{")
        self._nested(body)
        self.line(tail)

    def _nested(self, body: Any) -> None:
        self._depth += 1
        with self._names.scope():
            self.stmt(body)
        self._depth -= 1

    def _seq(self, node: T.SeqStmt) -> None:
        for child in node.seq:
            self.stmt(child)

    def loop_pragma(self, node: T.For) -> str | None:
        """A pragma before a loop, or None."""
        return None

    def _for(self, node: T.For) -> None:
        with self._names.scope():
            self._loop(node)

    def _loop(self, node: T.For) -> None:
        name, kind = self._names.of(node.loop_var), self.type(dtype_of(node.loop_var))
        start = const_int(node.min)
        end = self.expr(node.extent if start == 0 else node.min + node.extent, _REL + 1)
        step = const_int(node.step) if node.step is not None else 1
        advance = f"++{name}" if step == 1 else f"{name} += {self.expr(node.step)}"
        pragma = self.loop_pragma(node)
        if pragma is not None:
            self.line(pragma)
        compare = "<" if step is None or step > 0 else ">"
        self._block(
            f"for ({kind} {name} = {self.expr(node.min)}; {name} {compare} {end}; {advance})",
            node.body,
        )

    def _while(self, node: T.While) -> None:
        self._block(f"while ({self.expr(node.condition)})", node.body)

    def _if(self, node: T.IfThenElse) -> None:
        self.line(f"if ({self.expr(node.condition)}) {{")
        self._nested(node.then_case)
        if node.else_case is not None:
            self._block("} else", node.else_case)
        else:
            self.line("}")

    def _store(self, node: T.BufferStore) -> None:
        self.line(f"{self.element(node.buffer, node.indices)} = {self.expr(node.value)};")

    def _bind(self, node: T.Bind) -> None:
        is_pointer = isinstance(node.var.ty, ir.PointerType)
        kind = self.pointer_type(node.var.ty) if is_pointer else self.type(dtype_of(node.var))
        value = self.expr(node.value)
        self.line(
            f"const {kind} {self._names.of(node.var)} = {value};"
            if not is_pointer
            else f"{kind} {self._names.of(node.var)} = ({kind}){value};"
        )

    def storage(self, buffer: ir.Var) -> str:
        """Qualifiers before the declaration of a local array."""
        return ""

    def _alloc(self, node: T.AllocBuffer) -> None:
        buffer = node.buffer
        kind = f"{self.storage(buffer)}{self.type(dtype_of(buffer))}"
        self.line(f"{kind} {self._names.of(buffer)}[{self.expr(buffer.shape[0])}];")

    def _declare(self, node: T.DeclBuffer) -> None:
        kind = f"{self.type(dtype_of(node.buffer))}*"
        source = self.expr(node.data, _UNARY)
        self.line(f"{kind} {self._names.of(node.buffer)} = ({kind}){source};")

    def _evaluate(self, node: T.Evaluate) -> None:
        if const_int(node.value) is None:
            self.line(f"{self.expr(node.value)};")


def quoted(text: str) -> str:
    """A string literal of ``text`` in UTF-8.

    Octal escapes end after three digits, so text may follow them.
    """
    return '"' + "".join(_literal(byte) for byte in text.encode()) + '"'


def _literal(byte: int) -> str:
    plain = 32 <= byte < 127 and chr(byte) not in '\\"?'
    return chr(byte) if plain else f"\\{byte:03o}"
