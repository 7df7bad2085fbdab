"""Registry of the formulas of numeric operators (``tl.num.<name>``), one rule each.

The last pass before code generation replaces a call by the formula of its rule::

    @numeric("copysign")
    def copysign(x: Value, y: Value) -> Value: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir

from tilelang.cpu.intrinsics.math.value import Temporary, Value
from tilelang.transform.numerics.ops import call, is_numeric, operator_name

__all__ = [
    "Rule",
    "call",
    "expand",
    "is_numeric",
    "numeric",
    "operator_name",
]

#: Values of the arguments to the value of the result; a typed rule gets the result dtype first.
Rule = Callable[..., Value]

_RULES: dict[tuple[str, str], tuple[Rule, bool]] = {}
_ANY = ""


def numeric(name: str, typed: bool = False, kind: str = _ANY) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule of operator ``name``.

    Parameters
    ----------
    typed : bool
        Whether the rule takes the element dtype of the result as its first argument.
    kind : str
        Target kind the rule is for; by default all kinds that have no rule of their own.
    """

    def register(rule: Rule) -> Rule:
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


@numeric("keep")
def keep(x: Value) -> Value:
    """``x`` itself; keeps TVM's analyzer from inlining a temporary into its uses."""
    return x
