"""Registry of the numeric operators: opaque calls ``tl.num.<name>`` with one lowering rule each.

Passes replace arithmetic whose meaning TVM or LLVM would not keep (a wrapping ``+``, a comparison
that NaN may enter, ``exp``) by such a call. No simplifier looks into it and ``VectorizeLoop``
widens it; the last pass before code generation replaces it by the formula of its rule::

    @numeric("copysign")
    def copysign(x: Value, y: Value) -> Value: ...

    call("copysign", "float32", x, y)   # tl.num.copysign(x, y)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tvm import ir

from tilelang.cpu.intrinsics.math.value import Temporary, Value, prim_type

__all__ = [
    "PREFIX",
    "Rule",
    "call",
    "expand",
    "is_numeric",
    "numeric",
    "operator_name",
]

PREFIX = "tl.num."
#: Values of the arguments to the value of the result; a typed rule gets the result dtype first.
Rule = Callable[..., Value]

_PURE, _READS = 1, 2  # effect kinds of TVM; analysis does not look through a read
_RULES: dict[tuple[str, str], tuple[Rule, bool]] = {}
_EFFECTS: dict[str, int] = {}
_ANY = ""


@cache
def _op(name: str) -> ir.Op:
    """The TVM operator of ``name``; registered when it is first used, which costs a few calls."""
    full = PREFIX + name
    if full not in _existing():
        ir.register_op_attr(full, "TCallEffectKind", _EFFECTS[name])
        ir.register_op_attr(full, "TVectorizable", True)
        ir.register_op_attr(full, "TScriptPrinterName", full.replace(".", "_"))
    return ir.Op.get(full)


@cache
def _existing() -> frozenset[str]:
    """Operators that exist when the first one is used; listing them is slow."""
    return frozenset(map(str, ir.Op.list_op_names()))


def numeric(
    name: str, typed: bool = False, kind: str = _ANY, effect: int = _PURE
) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule of operator ``name``.

    Parameters
    ----------
    typed : bool
        Whether the rule takes the element dtype of the result as its first argument.
    kind : str
        Target kind the rule is for; by default all kinds that have no rule of their own.
    effect : int
        TVM's effect kind of the operator.
    """

    def register(rule: Rule) -> Rule:
        _EFFECTS[name] = effect
        _RULES[name, kind] = rule, typed
        return rule

    return register


def expand(node: ir.Call, kind: str, temporary: Temporary) -> ir.Expr:
    """The formula of a call of a numeric operator, for code of target ``kind``.

    ``temporary`` stores parts that are used more than once; see :meth:`Value.emit`.
    """
    name = operator_name(node)
    assert name is not None, node
    rule, typed = _RULES.get((name, kind)) or _RULES[name, _ANY]
    operands = [Value.of(arg) for arg in node.args]
    result = rule(_element(node.ty), *operands) if typed else rule(*operands)
    return result.emit(kind, temporary)


def _element(ty: Any) -> str:
    kind = ty.dtype
    return str(kind) if kind.lanes == 1 else str(kind.with_lanes(1))


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


@numeric("keep", effect=_READS)
def keep(x: Value) -> Value:
    """``x`` itself; keeps TVM's analyzer from inlining a temporary into its uses."""
    return x
