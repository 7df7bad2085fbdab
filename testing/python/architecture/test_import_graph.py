"""Which part of the package may import which, and that no imports run in circles."""

from __future__ import annotations

import ast
import re

import pytest
from source_tree import ROOT, functions, imports, internal_imports, modules

# A folder with a manifest is a backend; one more of them needs no edit here.
SLICES = tuple(
    area
    for area in sorted({module.area for module in modules().values()} - {"backend"})
    if f"tilelang.{area}.backend" in modules()
)
# Lowest first. A module imports from its own area and from areas in the layers below its own; the
# areas of one layer do not know each other.
LAYERS = (
    ("errors", "version", "math"),
    ("env",),
    ("ir", "contrib"),
    ("dtypes", "layout"),
    ("transform",),
    ("analysis",),
    ("backend", "codegen", "language", "interpreter"),
    ("engine", "instrumentation"),
    ("_native",),
    SLICES,
    ("cache", "utils"),
    ("profiler",),
    ("jit",),
    ("",),
    # Found by name from the package; they may use its public names.
    ("autotuner", "carver", "tools", "testing"),
    ("__main__",),
)
RANKS = {area: rank for rank, layer in enumerate(LAYERS) for area in layer}

# These offer names of the CUDA backend through a module `__getattr__`.
FACADES = ("tilelang.language", "tilelang.contrib.nvcc")


def test_every_area_has_a_layer():
    areas = {module.area for module in modules().values()}
    assert areas <= set(RANKS), f"give these a layer: {sorted(areas - set(RANKS))}"


def test_every_backend_is_a_slice():
    assert {"cpu", "cuda", "metal", "rocm", "webgpu"} <= set(SLICES)


def test_imports_point_downwards():
    wrong = []
    for module in modules().values():
        for found in internal_imports(module):
            area = found.module.partition(".")[2].split(".")[0]
            if area == module.area or RANKS[area] < RANKS[module.area]:
                continue
            if module.name in FACADES and found.in_function and area == "cuda":
                continue
            wrong.append(f"{module.at(found.line)}: {module.name} imports {found.module}")
    assert not wrong, "\n".join(wrong)


def test_no_import_cycles():
    graph = {
        module.name: {found.module for found in internal_imports(module) if not found.in_function}
        for module in modules().values()
    }
    cycles = [sorted(group) for group in _strongly_connected(graph) if len(group) > 1]
    assert not cycles, cycles


def test_no_star_imports():
    stars = [
        f"{module.at(found.line)}: from {found.module} import *"
        for module in modules().values()
        for found in imports(module)
        if found.star
    ]
    assert not stars, "\n".join(stars)


def test_imports_inside_functions_give_a_reason():
    silent = []
    for module in modules().values():
        lines = module.text.splitlines()
        if any(line.startswith("# Imports inside functions:") for line in lines):
            continue  # one reason for the whole module
        previous = -1
        for found in sorted(imports(module), key=lambda found: found.line):
            # One comment, on the line or above it, covers a run of adjacent imports.
            if found.in_function and found.line - previous > 1:
                near = lines[found.line - 2 : found.last_line]
                if not any("#" in line for line in near):
                    silent.append(f"{module.at(found.line)}: import of {found.module}")
            if found.in_function:
                previous = found.last_line
    assert not silent, "say why, in a comment on or above the line:\n" + "\n".join(silent)


@pytest.mark.parametrize("area", ["engine", "jit", "cache", "language", "analysis"])
def test_shared_areas_import_no_backend_slice(area):
    wrong = [
        f"{module.at(found.line)}: {found.module}"
        for module in modules().values()
        if module.area == area
        for found in internal_imports(module)
        if found.module.partition(".")[2].split(".")[0] in SLICES
        and not (module.name in FACADES and found.in_function)
    ]
    assert not wrong, "\n".join(wrong)


def test_target_code_generation_imports_no_runtime():
    """Lowering to text must work where nothing can run the result."""
    wrong = [
        f"{module.at(found.line)}: {found.module}"
        for module in modules().values()
        if module.area in ("analysis", "transform", "codegen", "engine", "ir", "layout")
        for found in imports(module)
        if not found.in_function
        and re.match(r"torch\b|cuda\b|tilelang\.(jit|cache|profiler)\b", found.module)
    ]
    assert not wrong, "\n".join(wrong)


def test_public_modules_declare_their_names():
    missing, unknown = [], []
    for module in modules().values():
        if module.name.rsplit(".", 1)[-1].startswith("_") or not _defines_names(module.tree):
            continue
        names = _declared_all(module.tree)
        if names is None:
            missing.append(str(module.path.relative_to(ROOT)))
            continue
        known = _module_names(module.tree)
        if "__getattr__" not in known:
            unknown += [f"{module.name}.{name}" for name in names if name not in known]
    assert not missing, "no __all__ in:\n" + "\n".join(missing)
    assert not unknown, "in __all__ but not defined: " + ", ".join(unknown)


def test_functions_are_found_by_qualified_name():
    """The tools of these tests see nested functions; otherwise limits would miss them."""
    names = {name for name, _ in functions(modules()["tilelang.backend.pass_pipeline.step"])}
    assert {"tvm_pass", "tvm_pass.run", "PassStep.__post_init__"} <= names


def _defines_names(tree: ast.Module) -> bool:
    return any(
        isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")
        for node in tree.body
    )


def _declared_all(tree: ast.Module) -> list[str] | None:
    names: list[str] | None = None
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == "__all__" and node.value is not None:
                names = names or []
                names += [
                    item.value
                    for item in ast.walk(node.value)
                    if isinstance(item, ast.Constant) and isinstance(item.value, str)
                ]
    return names


def _module_names(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _strongly_connected(graph: dict[str, set[str]]) -> list[set[str]]:
    """Tarjan's algorithm, with an explicit stack."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[set[str]] = []
    for root in graph:
        work = [] if root in index else [(root, iter(sorted(graph[root])))]
        if work:
            index[root] = low[root] = len(index)
            stack.append(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in graph:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    groups.append(set(stack[cut:]))
                    del stack[cut:]
    return groups


def test_cycle_search_finds_a_planted_cycle():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}
    assert [group for group in _strongly_connected(graph) if len(group) > 1] == [{"a", "b", "c"}]
