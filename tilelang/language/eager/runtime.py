"""The support module of rewritten functions: what their source calls under the name ``__tl__``."""

from __future__ import annotations

from typing import Any

from tilelang.ir.builder import current_or_none
from tilelang.ir.snapshot import position
from tilelang.language.eager.binding import (
    ann_assign,
    argument,
    assign,
    aug_assign,
    aug_attr,
    element,
    hint,
    iterate,
    named,
    once,
    set_attr,
    settle_all,
    unpack,
)
from tilelang.language.eager.builtin_calls import builtin
from tilelang.language.eager.control import (
    Scope,
    assertion,
    begin_scope,
    branch,
    check_raise,
    match_subject,
    ret,
    static_test,
    stmt,
)
from tilelang.language.eager.logic import (
    and_begin,
    and_end,
    logic_pop,
    mark,
    negate,
    or_begin,
    or_end,
    select_else,
    select_end,
    select_then,
)
from tilelang.language.eager.loops import loop, range_, while_loop
from tilelang.language.eager.operators import (
    BINARY_OPERATORS,
    COMPARISONS,
    chain,
    invert,
    neg,
    pos,
)
from tilelang.language.eager.subscript import aug_store, delete_item, item, load, slice_, store
from tilelang.language.eager.values import read, unbound

__all__ = [
    "and_begin",
    "and_end",
    "ann_assign",
    "argument",
    "assertion",
    "assign",
    "aug_assign",
    "aug_attr",
    "aug_store",
    "begin_scope",
    "branch",
    "builtin",
    "chain",
    "check_raise",
    "declare",
    "delete_item",
    "element",
    "enter",
    "hint",
    "invert",
    "item",
    "iterate",
    "load",
    "logic_pop",
    "loop",
    "mark",
    "match_subject",
    "named",
    "neg",
    "not_",
    "once",
    "or_begin",
    "or_end",
    "pos",
    "position",
    "range_",
    "read",
    "ret",
    "select_else",
    "select_end",
    "select_then",
    "set_attr",
    "settle_all",
    "slice",
    "static_test",
    "stmt",
    "store",
    "unbound",
    "unpack",
    "while_loop",
    *BINARY_OPERATORS,
    *COMPARISONS,
]

globals().update(BINARY_OPERATORS)
globals().update(COMPARISONS)
not_ = negate
slice = slice_


def declare(scope: Scope, name: str, annotation: Any, held: Any) -> Any:
    """``name: annotation`` without a value: declares an argument of the function being traced."""
    return held if scope.declares is None else scope.declares.declare(name, annotation, held)


def enter(manager: Any, pattern: Any) -> Any:
    """The context manager of a ``with`` statement; a launch names its indices after the target."""
    builder = current_or_none()
    if builder is not None:
        builder.name_hint = None
    announce = getattr(manager, "name_indices", None)
    if announce is not None and pattern is not None:
        announce(pattern)
    return manager
