"""Files, classes and functions stay small; every module says what it is."""

from __future__ import annotations

import ast

import limits
from source_tree import ROOT, body_lines, functions, modules


def _check(found: dict[str, int], limit: int, exceptions: dict[str, str], what: str) -> None:
    too_long = {name: size for name, size in found.items() if size > limit}
    new = {name: size for name, size in too_long.items() if name not in exceptions}
    stale = sorted(set(exceptions) - set(too_long))
    assert not new, f"{what} over {limit} lines: {new}"
    assert not stale, f"no longer over the limit, remove from limits.py: {stale}"


def test_python_files():
    sizes = {
        str(module.path.relative_to(ROOT)): len(module.text.splitlines())
        for module in modules().values()
    }
    _check(sizes, limits.MAX_FILE, limits.FILES, "files")


def test_functions():
    sizes = {
        f"{module.path.relative_to(ROOT)}:{name}": body_lines(node)
        for module in modules().values()
        for name, node in functions(module)
    }
    _check(sizes, limits.MAX_FUNCTION, limits.FUNCTIONS, "functions")


def test_classes():
    sizes = {
        f"{module.path.relative_to(ROOT)}:{node.name}": body_lines(node)
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    _check(sizes, limits.MAX_CLASS, limits.CLASSES, "classes")


def test_native_files():
    native = [
        path for end in ("cc", "h", "pyx", "cuh") for path in (ROOT / "src").rglob(f"*.{end}")
    ]
    assert native, "the search found no native source"
    sizes = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in native
    }
    _check(sizes, limits.MAX_NATIVE_FILE, limits.FILES, "native files")


def test_test_functions():
    sizes = {}
    # Whole kernels, long as their authors write them.
    kernels = ROOT / "testing" / "python" / "kernels"
    for path in sorted((ROOT / "testing").rglob("*.py")):
        if path.is_relative_to(kernels):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                sizes[f"{path.relative_to(ROOT)}:{node.name}"] = body_lines(node)
    _check(sizes, limits.MAX_FUNCTION, limits.FUNCTIONS, "test functions")


def test_every_module_has_a_docstring():
    silent = [
        str(module.path.relative_to(ROOT))
        for module in modules().values()
        if not ast.get_docstring(module.tree)
    ]
    assert not silent, silent


def test_public_functions_and_classes_have_docstrings():
    silent = [
        f"{module.at(node.lineno)}: {node.name}"
        for module in modules().values()
        for node in module.tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
        and not any("overload" in ast.unparse(item) for item in node.decorator_list)
    ]
    assert not silent, "\n".join(silent)


def _is_kernel(node: ast.FunctionDef) -> bool:
    """Whether a function is traced; its annotations describe tensors."""
    names = {ast.unparse(item).split("(")[0].split(".")[-1] for item in node.decorator_list}
    return bool(names & {"jit", "macro", "prim_func"})


def test_functions_are_annotated():
    bare = [
        f"{module.at(node.lineno)}: {name}"
        for module in modules().values()
        for name, node in functions(module)
        if node.returns is None and not _is_kernel(node)
    ]
    assert not bare, "\n".join(bare)
