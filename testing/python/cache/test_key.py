"""The cache key: everything that shapes the code, and nothing else."""

import hashlib

import pytest
import tvm
from tvm import ir
from tvm import tirx as T

from tilelang.cache.key import (
    _digest_folder,
    host_cpu,
    kernel_key,
    namespace,
    program_text,
    source_digest,
)
from tilelang.errors import CacheError
from tilelang.ir.op.copy import COPY

LLVM = tvm.target.Target({"kind": "llvm"})


def span(line, name="kernel.py"):
    return ir.Span(ir.SourceName(name), line, line, 1, 9)


def program(value=1.0, *, line=1, file="kernel.py", width=0):
    out = T.decl_buffer((8,), "float32", "out", layout=None)
    i = T.Var("i", "int32")
    store = T.BufferStore(out, T.const(value, "float32"), [i], span=span(line, file))
    loop = T.For(i, 0, 8, T.ForKind.SERIAL, store, span=span(line, file))
    copy = COPY.call(span(line, file), {"coalesced_width": width}, src=out[0:4], dst=out[4:8])
    func = T.PrimFunc([out], T.SeqStmt([loop, copy]), span=span(line, file))
    return func.with_attr("global_symbol", "main")


def key(func=None, **changes):
    given = {
        "target": LLVM,
        "target_host": LLVM,
        "execution_backend": "tvm_ffi",
        "pass_configs": {"tl.enable_fast_math": False},
        "compile_flags": ["-O2"],
        "loader": {"cpu": "x"},
    }
    return kernel_key(program() if func is None else func, **{**given, **changes})


def test_equal_programs_have_equal_keys():
    assert key() == key()
    assert len(key()) == 64


def test_source_locations_do_not_count():
    assert key(program(line=1)) == key(program(line=200, file='other "quoted".py'))


def test_source_locations_count_when_the_code_shows_them():
    moved = program(line=200)
    assert key(with_spans=True) != key(moved, with_spans=True)


def test_source_locations_count_in_programs_that_report_lines_when_they_run():
    def checked(line):
        n = T.Var("n", "int32")
        kind, text = ir.StringImm("AssertionError"), ir.StringImm("n is negative")
        body = T.AssertStmt(n >= 0, kind, [text], span(line))
        return T.PrimFunc([n], body, span=span(line)).with_attr("global_symbol", "main")

    assert key(checked(1)) == key(checked(1)) != key(checked(2))


def test_text_that_looks_like_a_location_is_part_of_the_program():
    with_text = [program().with_attr("note", f'{{"type":"ir.Span","data":{{{n}}}}}') for n in "12"]
    assert key(with_text[0]) != key(with_text[1])


def test_programs_that_print_alike_but_differ_in_call_attributes_differ():
    one, other = program(width=1), program(width=2)
    assert one.script() == other.script()
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "changes",
    [
        {"func": program(2.0)},
        {"func": program().with_attr("tilelang_out_idx", [-1])},
        {"target": tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})},
        {"target_host": None},
        {"target_host": tvm.target.Target({"kind": "c"})},
        {"execution_backend": "cython"},
        {"pass_configs": {"tl.enable_fast_math": True}},
        {"pass_configs": {}},
        {"compile_flags": ["-O3"]},
        {"compile_flags": []},
        {"loader": {"cpu": "y"}},
    ],
)
def test_everything_that_shapes_the_code_changes_the_key(changes):
    assert key(**changes) != key()


@pytest.mark.parametrize("name", ["tilelang", "tvm", "tvm_ffi"])
def test_versions_change_the_key(name, monkeypatch):
    from tilelang.cache import key as module

    before = key()
    changed = {**module._versions(), name: "changed"}
    monkeypatch.setattr(module, "_versions", lambda: changed)
    assert key() != before


def test_sources_of_the_compiler_change_the_key(monkeypatch):
    from tilelang.cache import key as module

    before = key()
    monkeypatch.setattr(module, "source_digest", lambda: "changed")
    assert key() != before


def digest_of(folder):
    digest = hashlib.sha256()
    _digest_folder(str(folder), digest)
    return digest.hexdigest()


def test_the_digest_of_a_tree_tells_what_shapes_code(tmp_path):
    for name in ("a/one.py", "a/two.so", "tools/doctor.py", "a/__pycache__/one.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    before = digest_of(tmp_path)
    (tmp_path / "tools/doctor.py").write_text("x = 2")
    (tmp_path / "a/__pycache__/one.pyc").write_text("changed")
    assert digest_of(tmp_path) == before
    (tmp_path / "a/one.py").write_text("x = 2")
    changed = digest_of(tmp_path)
    (tmp_path / "a/one.py").rename(tmp_path / "a/three.py")
    assert len({before, changed, digest_of(tmp_path)}) == 3
    assert len(source_digest()) == 64


def test_host_cpu_names_cpu_and_features():
    assert len(host_cpu().split()) >= 1
    assert namespace().count("/") == 1


def test_a_program_that_cannot_be_serialised_has_no_text():
    with pytest.raises(CacheError, match="cannot be serialised"):
        program_text(program().with_attr("object", object()))
