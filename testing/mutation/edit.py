"""Plant a bug in a function or table of the compiler, in memory and for a while.

A bug is a replacement in the syntax tree of one function: code that looks like ``before`` becomes
``after``. The function keeps its identity and gets other code, so that whoever holds a reference
runs the bug too. A module-level table (a dict) is built anew from its mutated source.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

__all__ = ["Mutation", "StaleMutation", "planted"]


class StaleMutation(LookupError):
    """The code that a mutation changes is not there any more: adapt the mutation."""


@dataclass(frozen=True)
class Mutation:
    """One planted bug.

    Parameters
    ----------
    name : str
        What goes wrong, with its area in front.
    where : str
        ``"module:function"``, ``"module:Class.method"`` or ``"module:TABLE"``.
    edits : tuple of (before, after) or (before, after, occurrence)
        Expressions or statements. All edits are made; ``before`` occurs exactly once, or the one
        at position ``occurrence`` is meant. ``after`` may be ``"pass"``.
    kernels : tuple of str
        The kernels that are expected to notice, tried first.
    how : str
        The execution that has the bug, one of :data:`testing.fuzz.execute.WAYS`.
    """

    name: str
    where: str
    edits: tuple[tuple[str, str] | tuple[str, str, int], ...]
    kernels: tuple[str, ...]
    how: str = "llvm"


@contextlib.contextmanager
def planted(mutation: Mutation) -> Iterator[None]:
    """Run the block with the bug in place.

    Raises
    ------
    StaleMutation
        If the function or the code to change is not found exactly once.
    """
    module_name, _, path = mutation.where.partition(":")
    module = importlib.import_module(module_name)
    target = _lookup(module, path, mutation)
    tree = ast.parse(inspect.getsource(module))
    node = _definition(tree, path.split("."), mutation)
    for edit in mutation.edits:
        node = _replaced(node, *edit, mutation=mutation)
    if isinstance(target, dict):
        with _other_entries(target, node, module):
            yield
    else:
        with _other_code(target, node, module):
            yield


def _lookup(module: ModuleType, path: str, mutation: Mutation) -> Any:
    found: Any = module
    for part in path.split("."):
        found = inspect.getattr_static(found, part, None)
    found = inspect.unwrap(found) if callable(found) else found
    if not isinstance(found, (FunctionType, dict)):
        raise StaleMutation(f"{mutation.name}: {mutation.where} is no function or dict")
    return found


def _definition(tree: ast.Module, path: list[str], mutation: Mutation) -> ast.AST:
    """The function definition or assignment at ``path``."""
    body: list[ast.stmt] = tree.body
    for depth, name in enumerate(path):
        for stmt in body:
            is_block = isinstance(stmt, (ast.FunctionDef, ast.ClassDef)) and stmt.name == name
            is_table = isinstance(stmt, (ast.Assign, ast.AnnAssign)) and name in _targets(stmt)
            if not (is_block or is_table):
                continue
            if depth == len(path) - 1:
                return stmt
            body = getattr(stmt, "body", [])
            break
    raise StaleMutation(f"{mutation.name}: {mutation.where} is not in the source")


def _targets(stmt: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _pattern(code: str) -> ast.AST:
    [stmt] = ast.parse(code).body
    return stmt.value if isinstance(stmt, ast.Expr) else stmt


class _Replacer(ast.NodeTransformer):
    def __init__(self, before: str, after: str, occurrence: int | None) -> None:
        self.before, self.after = ast.dump(_pattern(before)), after
        self.occurrence = occurrence
        self.count = 0

    def visit(self, node: ast.AST) -> Any:
        new = _pattern(self.after)
        inner = node.value if isinstance(node, ast.Expr) and isinstance(new, ast.stmt) else node
        if ast.dump(inner) != self.before:
            return self.generic_visit(node)
        self.count += 1
        if self.occurrence not in (None, self.count - 1):
            return node
        if isinstance(node, ast.stmt) and isinstance(new, ast.expr):
            new = ast.Expr(new)
        for part in ast.walk(new):
            ast.copy_location(part, node)
        return new


def _replaced(
    node: Any, before: str, after: str, occurrence: int | None = None, *, mutation: Mutation
) -> Any:
    replacer = _Replacer(before, after, occurrence)
    node = replacer.generic_visit(node)
    if replacer.count == 0 or (occurrence is None and replacer.count > 1):
        raise StaleMutation(
            f"{mutation.name}: {before!r} occurs {replacer.count} times in {mutation.where}"
        )
    return ast.fix_missing_locations(node)


def _run(node: ast.stmt, module: ModuleType) -> dict[str, Any]:
    """Execute one definition with a copy of the module's names."""
    future = ast.parse("from __future__ import annotations").body
    tree = ast.fix_missing_locations(ast.Module([*future, node], []))
    names = dict(vars(module))
    exec(compile(tree, module.__file__ or "?", "exec"), names)
    return names


@contextlib.contextmanager
def _other_code(function: FunctionType, node: Any, module: ModuleType) -> Iterator[None]:
    node.decorator_list = []
    code, function.__code__ = function.__code__, _run(node, module)[node.name].__code__
    try:
        yield
    finally:
        function.__code__ = code


@contextlib.contextmanager
def _other_entries(table: dict[Any, Any], node: Any, module: ModuleType) -> Iterator[None]:
    original, changed = dict(table), _run(node, module)[_targets(node)[0]]
    table.update(changed)
    try:
        yield
    finally:
        table.update(original)
