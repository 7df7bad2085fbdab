"""C source of lowered workers: the dialect record and the printer of target kind ``c``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.source_callback import edit_source
from tilelang.codegen.c_family import CFamilyPrinter, Dialect, quoted
from tilelang.ir.expr import const_int, dtype_of

__all__ = ["CModule", "CPrinter", "build_c"]

_ATOM = 13
_TYPES = {
    "bool": "uint8_t",
    "handle": "void*",
    "void": "void",
    "": "void",  # what a bare handle points to
    "float16": "_Float16",
    "float32": "float",
    "float64": "double",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "int128": "__int128",
    "uint128": "unsigned __int128",
}
_MATH = (
    "fabs", "floor", "ceil", "trunc", "round", "sqrt", "nearbyint", "exp", "exp2", "exp10", "log",
    "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "erf", "pow", "fmod", "hypot", "ldexp", "copysign",
    "nextafter", "fma",
)  # fmt: skip
_FUNCTIONS = {
    **{(f"tirx.{name}", "float64"): name for name in _MATH},
    **{(f"tirx.{name}", "float32"): f"{name}f" for name in _MATH},
    ("prim.ceil", "float64"): "ceil",
    ("prim.ceil", "float32"): "ceilf",
    ("tirx.isnan", ""): "isnan",
    ("tirx.isinf", ""): "isinf",
    ("tirx.isfinite", ""): "isfinite",
    ("tirx.popcount", "int32"): "__builtin_popcount",
    ("tirx.popcount", "uint32"): "__builtin_popcount",
    ("tirx.popcount", "int64"): "__builtin_popcountll",
    ("tirx.popcount", "uint64"): "__builtin_popcountll",
    ("tirx.isnullptr", ""): "tl_is_null",
}
_PREAMBLE = (Path(__file__).parent / "preamble.h").read_text().rstrip()
_PROTOTYPES = {
    "TVMFFIErrorSetRaisedFromCStr": "void (const char*, const char*)",
    "TVMFFIFunctionCall": "int (void*, void*, int32_t, void*)",
    "TVMFFIFunctionGetGlobal": "int (const void*, void*)",
    "TVMFFIObjectDecRef": "int (void*)",
}
_FLOAT_BITS = {
    "float16": ("half", "u16"),
    "float32": ("float", "u32"),
    "float64": ("double", "u64"),
}


class CPrinter(CFamilyPrinter):
    """Prints the workers of the CPU backend."""

    def __init__(self) -> None:
        super().__init__(
            Dialect("C", _TYPES, _FUNCTIONS, _PREAMBLE, reserved=("NAN", "INFINITY", "tl_any"))
        )
        self._stmt_rules[T.AssertStmt] = self._assert

    def module(self, functions: Mapping[str, T.PrimFunc]) -> str:
        """The functions behind the declarations of those of tvm-ffi they call."""
        text = super().module(functions)
        declared = [name for name in _PROTOTYPES if f"{name}(" in text]
        lines = [_PROTOTYPES[name].replace("(", f"{name}(", 1) + ";" for name in declared]
        head, body = text[: len(_PREAMBLE)], text[len(_PREAMBLE) :]
        return "\n".join([head, *lines]) + body

    def min_max(self, node: Any, kind: str) -> tuple[str, int]:
        """By a function, which evaluates its operands once."""
        return f"tl_{kind}_{dtype_of(node)}({self.expr(node.a)}, {self.expr(node.b)})", _ATOM

    def _assert(self, node: T.AssertStmt) -> None:
        """Return -1 with the error set if the condition does not hold."""
        text = "".join(str(part.value) for part in node.message_parts)
        self.line(f"if (!({self.expr(node.condition)})) {{")
        kind, message = quoted(str(node.error_kind.value)), quoted(text)
        self.line(f"  TVMFFIErrorSetRaisedFromCStr({kind}, {message});")
        self.line("  return -1;")
        self.line("}")

    def loop_pragma(self, node: T.For) -> str | None:
        """Unrolled and vector loops say so."""
        if node.kind == T.ForKind.UNROLLED:
            factor = node.annotations.get("pragma_unroll_factor") or const_int(node.extent) or 8
            return f"#pragma GCC unroll {factor}"
        return "#pragma GCC ivdep" if node.kind == T.ForKind.VECTORIZED else None

    def special_call(self, name: str, node: ir.Call) -> tuple[str, int] | None:
        """Adds the access to packed arguments."""
        if name == "tirx.tvm_struct_get":
            cell = f"((const tl_any*){self.expr(node.args[0])})[{self.expr(node.args[1])}].value"
            return (f"(void*)(intptr_t){cell}", 12) if _type_of(node) == "handle" else (cell, _ATOM)
        if name == "tirx.tvm_throw_last_error":
            return "return -1", _ATOM
        return super().special_call(name, node)

    def reinterpret(self, node: ir.Call) -> tuple[str, int]:
        """Through memcpy for floats, a cast for pointers and integers of one width."""
        source, target = _type_of(node.args[0]), _type_of(node)
        value = self.expr(node.args[0])
        if source == "handle":
            return f"({self.type(target)})(uintptr_t)({value})", 12
        if target == "handle":
            pointer = self.pointer_type(node.ty) if isinstance(node.ty, ir.PointerType) else "void*"
            return f"({pointer})(uintptr_t)({value})", 12
        if source == target:
            return f"({value})", _ATOM
        if source in _FLOAT_BITS:
            name, bits = _FLOAT_BITS[source]
            inner = f"tl_bits_{name}_to_{bits}({value})"
            return (
                (inner, _ATOM)
                if target.startswith("uint")
                else (f"({self.type(target)}){inner}", 12)
            )
        if target in _FLOAT_BITS:
            name, bits = _FLOAT_BITS[target]
            return f"tl_bits_{bits}_to_{name}({value})", _ATOM
        return f"({self.type(target)})({value})", 12


def _type_of(node: ir.Expr) -> str:
    """Dtype of an expression, ``handle`` for any pointer and for text."""
    pointer = isinstance(node, ir.StringImm) or isinstance(node.ty, ir.PointerType)
    return "handle" if pointer else dtype_of(node)


class CModule:
    """C source of one module; the execution backend compiles it."""

    def __init__(self, source: str) -> None:
        self.source = source

    def inspect_source(self, fmt: str = "c") -> str:
        """The text."""
        return self.source


def build_c(mod: IRModule, target: Target) -> CModule:
    """Print lowered workers as C; bodies come before the workers that call them."""
    ordered: dict[str, Any] = {}
    for name, func in sorted(
        ((gv.name_hint, f) for gv, f in mod.functions.items()),
        key=lambda item: item[0].startswith("__tvm_ffi_"),
    ):
        ordered[name] = func
    return CModule(edit_source(CPrinter().module(ordered), target))
