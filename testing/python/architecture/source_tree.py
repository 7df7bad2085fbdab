"""The package read as source: modules, their imports, their syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "tilelang"


@dataclass(frozen=True)
class Import:
    """One imported name: the module it comes from and the lines of the statement."""

    module: str
    line: int
    last_line: int
    in_function: bool
    star: bool


@dataclass(frozen=True)
class Module:
    """One Python file of the package."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @property
    def area(self) -> str:
        """The folder or file directly below ``tilelang/``; empty for the package itself."""
        return self.name.partition(".")[2].split(".")[0]

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"


@cache
def modules() -> dict[str, Module]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path)
    return found


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _statements(node: ast.AST, in_function: bool) -> Iterator[tuple[ast.stmt, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            continue
        inside = in_function or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, in_function
        yield from _statements(child, inside)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
    for _ in range(node.level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{node.module}" if node.module else package


def imports(module: Module) -> Iterator[Import]:
    """The imports of ``module``; blocks under ``TYPE_CHECKING`` do not count.

    ``from package import name`` is the submodule where there is one, else the package.
    """
    for node, inside in _statements(module.tree, False):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, node.end_lineno, inside, False)
            continue
        assert isinstance(node, ast.ImportFrom)
        source = _absolute(module, node)
        for alias in node.names:
            submodule = f"{source}.{alias.name}"
            target = submodule if submodule in modules() else source
            yield Import(target, node.lineno, node.end_lineno, inside, alias.name == "*")


def internal_imports(module: Module) -> Iterator[Import]:
    """The imports of ``module`` that stay inside the package."""
    for found in imports(module):
        if found.module.split(".")[0] == PACKAGE.name:
            yield found


def functions(module: Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of ``module`` with their qualified names, nested ones included."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield name, child
                yield from walk(child, f"{name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(module.tree, "")


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """Lines of a definition from its header to its end, docstrings inside it not counted."""
    total = node.end_lineno - node.lineno + 1
    for inner in ast.walk(node):
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if ast.get_docstring(inner, clean=False) is not None:
                total -= inner.body[0].end_lineno - inner.body[0].lineno + 1
    return total
