"""Functions whose code objects are equal, though their files or declarations differ."""

from __future__ import annotations

import importlib.util
import os

import pytest

from tilelang.language.eager.code_cache import CodeCache

TEXT = """
import tilelang
import tilelang.language as T

@tilelang.jit
def double(A):
    A: T.Tensor((8,), "DTYPE")
    B = T.empty((8,), "float64")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = A[i] + A[i]
    return B
"""


def load(path, dtype):
    path.parent.mkdir(exist_ok=True)
    path.write_text(TEXT.replace("DTYPE", dtype))
    # Written within one tick of the file system's clock, perhaps: only the time says it changed.
    stamp = path.stat().st_mtime_ns + len(dtype) * 10**9
    os.utime(path, ns=(stamp, stamp))
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def described(function):
    program = function.get_tir()
    spans = {str(program.span.source_name.name), str(program.body.span.source_name.name)}
    return str(program.params[0].dtype), spans


@pytest.mark.parametrize("first", ["float32", "float16"])
def test_each_file_has_its_own(tmp_path, first):
    paths = [tmp_path / name / "kernels.py" for name in ("one", "two")]
    dtypes = [first, "int32"]
    functions = [load(path, dtype) for path, dtype in zip(paths, dtypes, strict=True)]
    for function, path, dtype in zip(functions, paths, dtypes, strict=True):
        assert described(function) == (dtype, {str(path)})


def test_a_module_loaded_again_after_an_edit(tmp_path):
    path = tmp_path / "kernels" / "kernels.py"
    before = load(path, "float32")
    assert described(before) == ("float32", {str(path)})
    after = load(path, "int32")
    assert described(after) == ("int32", {str(path)})
    assert described(before) == ("float32", {str(path)})


def test_results_live_as_long_as_the_code():
    cache = CodeCache()
    codes = [compile("x = 1", "one", "exec"), compile("x = 1", "one", "exec")]
    assert codes[0] == codes[1]
    assert cache.put(codes[0], "first") == "first"
    assert cache.get(codes[0]) == "first" and cache.get(codes[1]) is None
    cache.put(codes[1], "second")
    del codes[0]
    assert cache.get(codes[0]) == "second" and len(cache._entries) == 1
