"""The table of calls that are no plain function of their arguments, and helpers for rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from tvm import ir

from tilelang.interpreter.nodes import Fn
from tilelang.interpreter.numbers import Dtype, round_float, wrap

__all__ = ["CALL_RULES", "call_rule", "narrow", "widen"]

#: ``rule(code, call)`` gives the function that evaluates ``call``.
Rule: TypeAlias = Callable[[Any, ir.Call], Fn]
#: Rules by op name.
CALL_RULES: dict[str, Rule] = {}


def call_rule(*names: str) -> Callable[[Rule], Rule]:
    """Declare the rule of the ops ``names``."""

    def declare(rule: Rule) -> Rule:
        CALL_RULES.update(dict.fromkeys(names, rule))
        return rule

    return declare


def widen(value: Any, dtype: Dtype) -> Any:
    """A value as the references take it: floats as float64, others as they are."""
    return np.asarray(value).astype(np.float64) if dtype.kind == "f" else value


def narrow(value: Any, dtype: Dtype) -> Any:
    """The result of a reference as a value of ``dtype``, rounded once."""
    value = np.asarray(value)
    if dtype.kind == "f":
        return round_float(value, dtype)
    return wrap(value.astype(dtype.carrier), dtype)[()]
