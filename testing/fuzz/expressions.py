"""Random expressions whose value every execution must agree on bit for bit.

Integers wrap, so anything goes. Floats are kept to operations that round once and in one way: no
products that a sum could contract, no functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

__all__ = ["condition", "expression"]

_COMMON = (
    "({a} + {b})",
    "({a} - {b})",
    "T.min({a}, {b})",
    "T.max({a}, {b})",
    "T.if_then_else({a} < {b}, {a}, {b})",
    "T.if_then_else({a} == {b}, {b}, x)",
    "T.if_then_else({a} <= {b} and {b} != x, {b}, {a})",
    "T.cast(T.cast({a}, 'float32'), D)",
    "T.cast(T.cast({a}, 'float16'), D)",
    "T.cast(T.cast({a}, 'int8'), D)",
    "T.cast(T.cast({a}, 'int64'), D)",
    "T.cast({a} > {b}, D)",
    "T.clamp({a}, T.cast(1, D), T.cast(5, D))",
)
_INTEGER = (
    "({a} * {b})",
    "({a} // {b})",
    "({a} % {b})",
    "T.truncdiv({a}, {b})",
    "T.truncmod({a}, {b})",
    "({a} & {b})",
    "({a} | {b})",
    "({a} ^ {b})",
    "(~{a})",
    "({a} << T.cast(2, D))",
    "({a} >> T.cast(1, D))",
    "({a} << ({b} & T.cast(63, D)))",
    "({a} >> ({b} & T.cast(63, D)))",
    "T.cast(T.cast({a}, 'uint16'), D)",
    "T.cast(T.cast({a}, 'bfloat16'), D)",
)
_FLOAT = (
    "({a} / {b})",
    "(-{a})",
    "T.abs({a})",
    "T.floor({a})",
    "T.ceil({a})",
    "T.sqrt({a})",
    "T.cast(T.cast({a}, 'int32'), D)",
    "T.cast(T.cast({a}, 'uint8'), D)",
    "T.cast(T.cast({a}, 'float64'), D)",
    "T.if_then_else(not ({a} < {b}), {a}, y)",
)
_CONSTANTS = ("T.cast(0, D)", "T.cast(3, D)", "T.cast(1, D)")
_DIVISIONS = ("/", "%", "T.trunc")


def expression(leaves: Sequence[str], integer: bool, depth: int = 2) -> st.SearchStrategy[str]:
    """An expression of dtype ``D`` over ``x``, ``y`` and ``leaves``, which are names of indices."""
    casts = [f"T.cast({leaf}, D)" for leaf in leaves]
    ends = st.sampled_from(("x", "x", "y", *casts, *_CONSTANTS))
    forms = st.sampled_from(_COMMON + (_INTEGER if integer else _FLOAT))
    found = ends
    for _ in range(depth):
        found = st.one_of(ends, st.builds(_joined, forms, found, found))
    return found


def _joined(form: str, a: str, b: str) -> str:
    if any(division in form for division in _DIVISIONS) and b == _CONSTANTS[0]:
        b = _CONSTANTS[1]  # a division by the constant 0 is refused
    return form.format(a=a, b=b)


def condition(leaves: Sequence[str], data: bool = True) -> st.SearchStrategy[str]:
    """A condition over indices, and over ``x`` and ``y`` if ``data``."""
    one = st.sampled_from(tuple(leaves))
    number = st.integers(-1, 9)
    forms = [
        st.builds("{} < {}".format, one, one),
        st.builds("{} >= {}".format, one, number),
        st.builds("({} + {}) % 2 == 0".format, one, one),
        st.builds("{} > 0 and {} < {}".format, one, one, number),
        st.builds("{} == {} or {} == 2".format, one, number, one),
        st.builds("not {} * 2 < {}".format, one, number),
        st.builds("0 <= {} - 1 < {}".format, one, number),
    ]
    if data:
        forms += [st.just("x > y"), st.just("x == y"), st.just("not x < y")]
    return st.one_of(*forms)
