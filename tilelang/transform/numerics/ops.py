"""Numeric operators: opaque calls ``tl.num.<name>`` that no simplifier looks into.

Passes replace arithmetic whose meaning TVM or a compiler behind it would not keep (a wrapping
``+``, a comparison that NaN may enter, ``exp``) by such a call, and vectorisation widens it. A
backend gives them meaning at its end: by formulas, or by functions of its language::

    call("copysign", "float32", x, y)   # tl.num.copysign(x, y)
"""

from __future__ import annotations

import threading
from functools import cache, lru_cache
from typing import Any

from tvm import ir

__all__ = ["PREFIX", "call", "is_numeric", "operator_name", "prim_type"]

PREFIX = "tl.num."
_PURE, _READS = 1, 2  # effect kinds of TVM; analysis does not look through a read
# `keep` is its argument; it keeps TVM's analyzer from inlining a temporary into its uses.
_EFFECTS = {"keep": _READS}


_LOCK = threading.Lock()
"""Kernels are compiled in parallel, and an operator is registered once."""


@cache
def _op(name: str) -> ir.Op:
    """The TVM operator of ``name``; registered when it is first used, which costs a few calls."""
    full = PREFIX + name
    with _LOCK:
        _register(full, name)
    return ir.Op.get(full)


def _register(full: str, name: str) -> None:
    if full not in _existing():
        _existing().add(full)
        ir.register_op_attr(full, "TCallEffectKind", _EFFECTS.get(name, _PURE))
        ir.register_op_attr(full, "TVectorizable", True)
        ir.register_op_attr(full, "TScriptPrinterName", full.replace(".", "_"))


@cache
def _existing() -> set[str]:
    """Operators that exist; they are listed once, which is slow."""
    return set(map(str, ir.Op.list_op_names()))


@lru_cache(maxsize=512)
def prim_type(dtype: str, lanes: int = 1) -> ir.PrimType:
    """The TVM type of ``lanes`` elements of ``dtype``."""
    return ir.PrimType(dtype if lanes == 1 else f"{dtype}x{lanes}")


def call(name: str, dtype: str, *args: ir.Expr, span: ir.Span | None = None) -> ir.Call:
    """A call of operator ``name`` with elements of ``dtype`` and the lanes of ``args``."""
    lanes = max(arg.ty.dtype.lanes for arg in args)
    return ir.Call(_op(name), list(args), span=span, ret_ty=prim_type(dtype, lanes))


def is_numeric(expr: Any) -> bool:
    """Whether ``expr`` is a call of a numeric operator."""
    return operator_name(expr) is not None


def operator_name(expr: Any) -> str | None:
    """The name of the numeric operator that ``expr`` calls, or None."""
    if isinstance(expr, ir.Call) and isinstance(expr.op, ir.Op):
        name = str(expr.op.name)
        if name.startswith(PREFIX):
            return name[len(PREFIX) :]
    return None
