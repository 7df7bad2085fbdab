"""Who decides what: target choice, the environment, other packages' classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from source_tree import Module, imports, modules

from tilelang.backend import list_backends

NEUTRAL_AREAS = ("engine", "jit", "cache")


def _kind_access(tree: ast.AST) -> Iterator[int]:
    """Lines that read ``<target>.kind.name`` or the device type TVM gives a target."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        of_kind = isinstance(node.value, ast.Attribute) and node.value.attr == "kind"
        if (node.attr == "name" and of_kind) or node.attr == "get_target_device_type":
            yield node.lineno


def _comparisons(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Lines that compare a value with one of ``names``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = (node.left, *node.comparators)
            if any(_is_name(item, names) for part in parts for item in ast.walk(part)):
                yield node.lineno
        if isinstance(node, ast.MatchValue) and _is_name(node.value, names):
            yield node.lineno


def _is_name(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names


def _kinds() -> set[str]:
    declared = {kind for module in list_backends().values() for kind in module.target_kinds}
    return declared | set(list_backends()) | {"rocm"}


def test_no_target_dispatch_in_engine_jit_and_cache():
    wrong = [
        module.at(line)
        for module in modules().values()
        if module.area in NEUTRAL_AREAS
        for line in (*_kind_access(module.tree), *_comparisons(module.tree, _kinds()))
    ]
    assert not wrong, "ask the BackendContext or the manifest instead:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    [
        "x = target.kind.name",
        "x = DEVICES[target.get_target_device_type()]",
        "if kind == 'cuda': pass",
        "if kind in ('llvm', 'c'): pass",
        "match kind:\n  case 'hip': pass",
    ],
)
def test_dispatch_search_finds_planted_dispatch(source):
    tree = ast.parse(source)
    assert [*_kind_access(tree), *_comparisons(tree, _kinds())]


def test_execution_backend_names_are_not_dispatched_on():
    """Adapters are found in their registry, by name as data."""
    names = {spec.name for module in list_backends().values() for spec in module.execution_backends}
    wrong = [
        module.at(line)
        for module in modules().values()
        if module.area in NEUTRAL_AREAS and ".adapter." not in module.name
        for line in _comparisons(module.tree, names)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_environment_is_read_in_one_module():
    wrong = []
    for module in modules().values():
        if module.name == "tilelang.env":
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv"):
                wrong.append(module.at(node.lineno))
            if isinstance(node, ast.ImportFrom) and node.module == "os":
                wrong += [
                    module.at(node.lineno) for a in node.names if a.name in ("environ", "getenv")
                ]
    assert not wrong, "read it through tilelang.env:\n" + "\n".join(wrong)


def _foreign_names(module: Module) -> set[str]:
    """Names a module imports from other distributions."""
    names = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names |= {
                (alias.asname or alias.name).split(".")[0]
                for alias in node.names
                if not alias.name.startswith("tilelang")
            }
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("tilelang"):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _patches(module: Module) -> Iterator[tuple[int, str]]:
    """Assignments to attributes of names imported from other distributions."""
    foreign = _foreign_names(module)
    for node in ast.walk(module.tree):
        patched: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            patched = [target for target in node.targets if isinstance(target, ast.Attribute)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            patched = node.args[:1]
        for target in patched:
            if re.split(r"\W", ast.unparse(target))[0] in foreign:
                yield node.lineno, ast.unparse(node)


def test_other_packages_are_not_patched():
    wrong = [
        f"{module.at(line)}: {text}"
        for module in modules().values()
        for line, text in _patches(module)
    ]
    # The lazy module class of `tilelang.env` is set on our own entry of `sys.modules`.
    wrong = [entry for entry in wrong if "sys.modules[__name__].__class__" not in entry]
    assert not wrong, "\n".join(wrong)


def test_only_manifests_register_backends():
    wrong = [
        module.at(node.lineno)
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] == "register_backend"
        and not module.name.endswith(("backend", "_backend"))
    ]
    assert not wrong, "\n".join(wrong)


def test_manifests_import_only_interfaces():
    """Registration is light: no pipeline, codegen or language is imported for it."""
    allowed = ("tilelang.backend", "tilelang.errors", "tilelang.env")
    own = ("target", "execution_backend", "pipeline")
    wrong = []
    for module in modules().values():
        name = module.name.rpartition(".")[2]
        if module.area == "backend" or name not in ("backend", "target", "execution_backend"):
            continue
        siblings = tuple(f"tilelang.{module.area}.{part}" for part in own)
        wrong += [
            f"{module.at(found.line)}: {found.module}"
            for found in imports(module)
            if found.module.startswith("tilelang.")
            and not found.module.startswith(allowed + siblings)
        ]
    assert not wrong, "\n".join(wrong)
