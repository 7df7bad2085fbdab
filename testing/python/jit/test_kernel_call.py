"""How a call reaches the launcher, with and without the extension."""

import subprocess
import sys

import pytest
import torch

import tilelang
from tilelang.jit.kernel import JITKernel
from tilelang.jit.kernel_call import KernelCall, PythonKernelCall, show_python_call

WITHOUT_EXTENSION = """
import sys
sys.modules["tilelang.jit._launcher"] = None
import torch
import tilelang
import tilelang.language as T
from tilelang.errors import ArgumentTypeError
from tilelang.jit.kernel_call import PythonKernelCall

@T.prim_func
def shift(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), by: T.float32 = 2.0):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            B[i] = A[i] + by

kernel = tilelang.compile(shift, out_idx=1, target="llvm")
assert isinstance(kernel, PythonKernelCall)
a = torch.ones(8)
assert torch.equal(kernel(a), a + 2) and torch.equal(kernel(a, by=3.0), a + 3)
try:
    kernel(a, 1.0, 1.0)
except ArgumentTypeError:
    print("refused")
"""


@pytest.fixture
def kernel(add_factory):
    return tilelang.compile(add_factory(), out_idx=-1)


def test_the_usual_call_enters_no_python_code(kernel, monkeypatch):
    if KernelCall is PythonKernelCall:
        pytest.skip("the extension is not built here")
    a, b = torch.ones(64), torch.ones(64)

    def refuse(self, *args, **kwargs):
        raise AssertionError("called")

    monkeypatch.setattr(JITKernel, "_call", refuse)
    assert torch.equal(kernel(a, b), a + b)
    with pytest.raises(AssertionError, match="called"):
        kernel(a, B=b)


def test_the_call_reads_as_a_python_function(kernel):
    assert JITKernel.__call__ is JITKernel.__dict__["_call"]
    a, b = torch.ones(64), torch.ones(64)
    assert torch.equal(kernel.__call__(a, b), a + b)


def test_a_base_in_python_calls_what_it_is_shown():
    class Kernel(PythonKernelCall):
        def _call(self, *args):
            return args

    assert Kernel()(1, 2) == (1, 2)
    show_python_call(Kernel, lambda self, *args: len(args))
    assert Kernel()(1, 2) == 2


def test_kernels_run_without_the_extension(tmp_path):
    script = tmp_path / "without.py"
    script.write_text(WITHOUT_EXTENSION)
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("refused\n", 0), done.stderr
