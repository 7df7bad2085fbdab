"""Which names a piece of source binds: the static half of the scoping rules."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

__all__ = [
    "RUNTIME",
    "SCOPE",
    "Names",
    "annotation_names",
    "assigned",
    "exposed",
    "function_names",
    "has_call",
    "target_names",
]

#: The name of the run-time support module inside rewritten functions, and of the scope object.
#: They end with underscores so that classes do not mangle them.
RUNTIME = "__tl__"
SCOPE = "__tl_scope__"

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Names:
    """The names of one function.

    ``params`` and ``locals`` are its own; ``outer`` come from enclosing functions (closure);
    ``declared`` are those declared global or nonlocal in it.
    """

    params: set[str]
    locals: set[str]
    outer: set[str]
    declared: set[str] = field(default_factory=set)

    @property
    def values(self) -> set[str]:
        """Names that may hold a traced value: everything but globals and builtins."""
        return self.params | self.locals | self.outer


def target_names(target: ast.expr) -> Iterator[tuple[str, int]]:
    """The names (with line) that assigning to ``target`` binds."""
    if isinstance(target, ast.Name):
        yield target.id, target.lineno
    elif isinstance(target, ast.Starred):
        yield from target_names(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from target_names(element)


def assigned(nodes: Iterable[ast.AST]) -> dict[str, int]:
    """Names bound by assignment (not def, import or class) in ``nodes``, with their first line.

    Nested functions and comprehensions have their own names and are not entered, except for
    ``:=``, which binds in the enclosing function.
    """
    found: dict[str, int] = {}
    for node in nodes:
        for name, line in _assigned_in(node, in_comprehension=False):
            found.setdefault(name, line)
    return found


def _assigned_in(node: ast.AST, in_comprehension: bool) -> Iterator[tuple[str, int]]:
    if isinstance(node, _NESTED):
        return
    if isinstance(node, ast.NamedExpr):
        yield node.target.id, node.lineno
    elif not in_comprehension:
        yield from _bound_by(node)
    inside = in_comprehension or isinstance(node, _COMPREHENSIONS)
    for child in ast.iter_child_nodes(node):
        yield from _assigned_in(child, inside)


def _bound_by(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from target_names(target)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        yield from target_names(node.target)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from target_names(node.optional_vars)
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            yield from target_names(target)
    elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name, node.lineno
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, node.lineno


def function_names(node: ast.FunctionDef | ast.Lambda, outer: Iterable[str]) -> Names:
    """Collect the names of a function whose enclosing functions provide ``outer``."""
    args = node.args
    params = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    params |= {a.arg for a in (args.vararg, args.kwarg) if a is not None}
    if isinstance(node, ast.Lambda):
        return Names(params, set(), set(outer) - params)
    declared: set[str] = set()
    handlers: set[str] = set()
    for child in _own_nodes(node.body):
        if isinstance(child, ast.Global | ast.Nonlocal):
            declared.update(child.names)
        elif isinstance(child, ast.ExceptHandler) and child.name:
            handlers.add(child.name)
    names = set(assigned(node.body)) - params - declared - handlers
    return Names(params, names, set(outer) - params - names, declared)


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        yield node
        if not isinstance(node, _NESTED):
            yield from _own_nodes(ast.iter_child_nodes(node))


def annotation_names(node: ast.FunctionDef) -> set[str]:
    """The names that declarations in the body of a function mention."""
    annotations = [n.annotation for n in _own_nodes(node.body) if isinstance(n, ast.AnnAssign)]
    return {n.id for a in annotations for n in ast.walk(a) if isinstance(n, ast.Name)}


def has_call(node: ast.AST) -> bool:
    """Whether evaluating ``node`` calls something (and so may allocate a buffer to be named)."""
    return any(isinstance(child, ast.Call) for child in ast.walk(node))


def exposed(body: Iterable[ast.stmt]) -> set[str]:
    """Names that ``body`` may read before it assigns them itself."""
    found: set[str] = set()
    _read_before(body, set(), found)
    return found


def _read_before(body: Iterable[ast.stmt], bound: set[str], found: set[str]) -> set[str]:
    """Add to ``found`` what is read while not ``bound``; returns what is bound for sure after."""
    for node in body:
        if isinstance(node, ast.If):
            _expression(node.test, bound, found)
            then = _read_before(node.body, set(bound), found)
            bound |= then & _read_before(node.orelse, set(bound), found)
        elif isinstance(node, ast.For):
            _expression(node.iter, bound, found)
            inside = bound | {name for name, _ in target_names(node.target)}
            _read_before(node.body, inside, found)
            _read_before(node.orelse, set(bound), found)
        elif isinstance(node, ast.While):
            _expression(node.test, bound, found)
            _read_before(node.body, set(bound), found)
        elif isinstance(node, ast.With):
            for item in node.items:
                _expression(item.context_expr, bound, found)
                if item.optional_vars is not None:
                    bound |= {name for name, _ in target_names(item.optional_vars)}
            bound |= _read_before(node.body, bound, found)
        else:
            _expression(node, bound, found)
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                bound |= {name for name, _ in _bound_by(node)}
    return bound


def _expression(node: ast.AST, bound: set[str], found: set[str]) -> None:
    """The names that an expression or a simple statement reads (or may read when called)."""
    if isinstance(node, ast.AugAssign):
        found |= {name for name, _ in target_names(node.target)} - bound
    for child in ast.walk(node):
        if (
            isinstance(child, ast.Name)
            and isinstance(child.ctx, ast.Load)
            and child.id not in bound
        ):
            found.add(child.id)
