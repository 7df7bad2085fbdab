"""The public names: snapshot, dialects, stubs, imports in any order, names not there yet."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilelang.language as T
from tilelang.cpu import language as cpu
from tilelang.cuda import language as cuda
from tilelang.errors import UnsupportedError
from tilelang.ir.dtype import NAMES
from tilelang.language import exports
from tilelang.language.not_yet import NOT_YET, NotYet
from tilelang.metal import language as metal
from tilelang.rocm import language as rocm
from tilelang.webgpu import language as webgpu

sys.path.insert(0, str(Path(__file__).parent))
import stubgen

DIALECTS = {"cpu": cpu, "cuda": cuda, "metal": metal, "rocm": rocm, "webgpu": webgpu}
NEUTRAL_GROUPS = (
    "common",
    "eager",
    "dtype helpers",
    "fast math",
    "tir",
    "shared async",
    "dtype scalars",
)


def snapshot() -> dict[str, set[str]]:
    """The names of ``api_snapshot.txt`` by group."""
    groups: dict[str, set[str]] = {}
    for line in Path(__file__).with_name("api_snapshot.txt").read_text().splitlines():
        if line.startswith("["):
            group = groups.setdefault(line.strip("[]"), set())
        elif line and not line.startswith("#"):
            group.update(line.split())
    return groups


SNAPSHOT = snapshot()


def test_the_snapshot_has_all_groups():
    sizes = {group: len(names) for group, names in SNAPSHOT.items()}
    assert sizes["common"] == 132 and sizes["cuda"] == 128 and sizes["tir"] == 133
    assert sizes["rocm"] == 17 and sizes["metal"] == 8 and sizes["eager"] == 8


@pytest.mark.parametrize("group", NEUTRAL_GROUPS)
def test_neutral_names_exist_in_every_dialect(group):
    wanted = SNAPSHOT[group] - set(NOT_YET["common"])
    for module in (T, *DIALECTS.values()):
        assert wanted <= set(module.__all__), sorted(wanted - set(module.__all__))
        assert all(getattr(module, name) is getattr(T, name) for name in wanted)


@pytest.mark.parametrize("dialect", ["cuda", "rocm", "metal"])
def test_extensions_exist_in_their_dialect_only(dialect):
    wanted = SNAPSHOT[dialect] - set(NOT_YET.get(dialect, {}))
    own = set(DIALECTS[dialect].__all__) - set(T.__all__)
    assert wanted - set(T.__all__) == own, sorted(own ^ (wanted - set(T.__all__)))
    for other in set(DIALECTS) - {dialect}:
        shared = own & set(DIALECTS[other].__all__)
        assert not shared, f"{sorted(shared)} are also in {other}"


def test_no_name_is_exported_that_the_snapshot_does_not_list():
    listed = set().union(*(SNAPSHOT[group] for group in (*NEUTRAL_GROUPS, "also neutral")), NAMES)
    assert set(T.__all__) <= listed, sorted(set(T.__all__) - listed)
    assert SNAPSHOT["also neutral"] <= set(T.__all__)


def test_cpu_and_webgpu_add_nothing():
    assert cpu.__all__ == webgpu.__all__ == T.__all__


@pytest.mark.parametrize("module", [T, *DIALECTS.values()])
def test_all_names_resolve_once(module):
    assert module.__all__ == sorted(set(module.__all__))
    assert all(hasattr(module, name) for name in module.__all__)
    assert re.fullmatch("cpu|cuda|metal|rocm|webgpu", module.__tilelang_dialect__)


def test_the_facade_is_the_cuda_dialect():
    assert T.__tilelang_dialect__ == "cuda"
    assert T.tma_load is cuda.tma_load and set(cuda.__all__) <= set(dir(T))
    assert "tma_load" not in vars(T), "CUDA names are found when asked for"


def test_no_name_hides_a_submodule():
    for module in (T, *DIALECTS.values()):
        (folder,) = module.__path__
        submodules = {path.stem for path in Path(folder).glob("*.py")}
        # ``T.allocate`` is a function; its module is only ever imported from.
        assert submodules & set(module.__all__) <= {"allocate"}


@pytest.mark.parametrize("module", [T, cpu, rocm])
def test_unknown_names_are_attribute_errors(module):
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name
    assert not hasattr(cpu, "tma_load")


@pytest.mark.parametrize(
    ("dialect", "name"), [(dialect, name) for dialect, names in NOT_YET.items() for name in names]
)
def test_names_not_there_yet_say_why(dialect, name):
    module = T if dialect == "common" else DIALECTS[dialect]
    missing = getattr(module, name)
    assert isinstance(missing, NotYet) and name not in module.__all__
    for use in (lambda: missing(1, x=2), lambda: missing.Square):
        with pytest.raises(
            UnsupportedError,
            match=re.escape(f"T.{name} is not in this version: it {NOT_YET[dialect][name]}"),
        ):
            use()


def test_names_not_there_yet_are_public_names():
    groups = {"common": "common", "cuda": "cuda", "rocm": "rocm"}
    for dialect, names in NOT_YET.items():
        assert set(names) <= SNAPSHOT[groups[dialect]]


@pytest.mark.parametrize("path", stubgen.stubs(), ids=lambda path: str(path.parts[-3:]))
def test_stubs_are_current(path):
    assert path.read_text() == stubgen.stubs()[path], "run testing/python/language/stubgen.py"


def test_every_module_says_what_it_exports():
    for module, names in (*exports.NEUTRAL, *sum(exports.EXTENSIONS.values(), ())):
        found = sys.modules[module].__all__
        assert names is None or set(names) <= set(found), module


FIRST = (
    "tilelang.language",
    "tilelang.language.math",
    "tilelang.language.kernel",
    "tilelang.cuda.language",
    "tilelang.cuda.language.matrix",
    "tilelang.rocm.language",
    "tilelang.cpu.language",
    "tilelang.dtypes",
    "tilelang.ir.intrin",
    "tilelang.ir.op.copy",
    "tilelang.layout",
)
# One process loads TVM and torch; each child then imports the package in another order.
IMPORT_FIRST = """
import importlib, os, sys, traceback
import tvm, torch

failed = []
for module in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(module)
            import tilelang.language as T
            from tilelang.cuda import language as C
            from tilelang.metal import language as M
            assert T.exp is C.exp is M.exp and T.tma_load is C.tma_load and T.Kernel
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(module)
sys.exit(f"failed: {failed}" if failed else 0)
"""


def test_any_module_may_be_imported_first():
    command = [sys.executable, "-c", IMPORT_FIRST, *FIRST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_type_checkers_see_the_names(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tilelang.language as T\n"
        "from tilelang.cpu import language as C\n"
        "reveal_type(T.tma_load)\n"
        "reveal_type(T.float16)\n"
        "C.tma_load\n"
    )
    options = ["--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    root = Path(T.__path__[0]).parent.parent
    config = ["--config-file", str(root / "mypy.ini")]
    pytest.importorskip("mypy", reason="the type checker is a development tool")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *config, *options, str(program)],
        capture_output=True, text=True, check=False, cwd=root,
    )  # fmt: skip
    assert 'note: Revealed type is "def (*args: Any)' in done.stdout, done.stdout
    assert "tilelang.ir.dtype.dtype" in done.stdout
    assert 'has no attribute "tma_load"' in done.stdout and "Found 1 error" in done.stdout
