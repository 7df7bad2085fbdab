"""The Cython call path: same arguments, same errors, same results as the tvm-ffi call."""

import dataclasses
import gc
import weakref

import numpy as np
import pytest
import torch
import tvm_ffi
from launch_helpers import N, plan_of, scalar, slot_array, tensor

from tilelang._native import make_cpu_launcher

_launcher = pytest.importorskip("tilelang.jit._launcher", reason="the extension is not built here")


def renamed(plan, entry):
    (kernel,) = plan.kernels
    return dataclasses.replace(plan, kernels=(dataclasses.replace(kernel, entry=entry),))


@pytest.fixture
def add_one(worker_library):
    plan = plan_of(tensor("A", N), tensor("B", N, access="w"), grid=(N, 1, 1))
    return _launcher.load_launcher(worker_library, renamed(plan, "add_one"))


@pytest.fixture
def add_one_out(worker_library):
    plan = plan_of(tensor("A", N), tensor("B", N, role="out"), grid=(N, 1, 1))
    return _launcher.load_launcher(worker_library, renamed(plan, "add_one"))


def launcher_of(*params, worker=lambda *_: None, **options):
    plan = plan_of(*params, **options)
    return _launcher.KernelLauncher(make_cpu_launcher(plan, [worker]), plan)


def test_runs_compiled_code(add_one):
    value, out = torch.arange(5.0), torch.empty(5)
    assert add_one(value, out) is None
    assert torch.equal(out, value + 1)


def test_returns_a_torch_tensor(add_one_out):
    value = torch.arange(5.0)
    out = add_one_out(value)
    assert type(out) is torch.Tensor
    assert torch.equal(out, value + 1)


def test_returned_tensor_is_owned_once(add_one_out):
    out = weakref.ref(add_one_out(torch.ones(3)))
    gc.collect()
    assert out() is None


@pytest.mark.parametrize("many", [False, True])
def test_results_do_not_leak(many):
    resource = pytest.importorskip("resource", reason="memory is measured with getrusage")
    run = launcher_of(tensor("A", N), tensor("B", N, role="out"), returns_list=many)
    value = torch.ones(1 << 18)
    run(value)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(500):
        run(value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


def test_lists():
    run = launcher_of(tensor("A", N), tensor("B", N, role="out"), tensor("C", 2, role="out"))
    out = run(torch.ones(3))
    assert type(out) is list
    assert [tuple(t.shape) for t in out] == [(3,), (2,)]


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(4),
        torch.ones(4, requires_grad=True),
        torch.nn.Parameter(torch.ones(4)),
        torch.arange(8.0)[::2].contiguous(),
        torch.ones(5)[1:],
        np.ones(4, np.float32),
        tvm_ffi.from_dlpack(torch.ones(4)),
    ],
    ids=["plain", "requires_grad", "Parameter", "contiguous", "view", "numpy", "tvm_ffi"],
)
def test_array_types(add_one_out, value):
    expected = np.from_dlpack(value.detach() if isinstance(value, torch.Tensor) else value) + 1
    assert np.array_equal(np.from_dlpack(add_one_out(value)), expected)


def test_scalars_and_none():
    seen = []
    params = (
        tensor("A", N),
        scalar("i", "int64"),
        scalar("x", "float32"),
        scalar("b", "bool"),
        scalar("u", "uint64"),
        tensor("bias", N, access="none"),
    )

    def worker(slots, begin, end, scratch):
        seen.append(slot_array(slots, 6)[1:])

    run = launcher_of(*params, worker=worker)
    run(torch.ones(2), -1, 1.0, True, 2**63, None)
    run(torch.ones(2), np.int64(-1), np.float32(1), False, 0, None)
    assert seen == [[2**64 - 1, 0x3F800000, 1, 2**63, 0], [2**64 - 1, 0x3F800000, 0, 0, 0]]


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((torch.ones(3),), TypeError, "expected 2 arguments, got 1; 'B' is missing"),
        ((torch.ones(3), torch.ones(4)), ValueError, "'A'.*expected shape|'B'.*expected shape"),
        ((torch.ones(3), torch.ones(3).int()), TypeError, "'B'.*expected dtype float32, got int32"),
        ((torch.ones(3), "x"), TypeError, "'B'.*got str"),
        ((None, torch.ones(3)), TypeError, "'A'.*got None"),
        ((torch.ones(3).to_sparse(), torch.ones(3)), TypeError, "'A'.*layout torch.sparse_coo"),
        ((torch.ones(3), torch.ones(3, device="meta")), TypeError, "'B'.*on device meta"),
        ((torch.ones(1),) * 40, TypeError, "expected 2 arguments, got 40"),
    ],
)
def test_errors_are_those_of_the_plain_call(add_one, args, error, message):
    with pytest.raises(error, match=message):
        add_one(*args)
    out = torch.empty(2)
    add_one(torch.zeros(2), out)
    assert out.tolist() == [1, 1]


def test_failure_of_a_compiled_worker(worker_library):
    plan = renamed(plan_of(tensor("A", N), grid=(9, 1, 1)), "fail")
    run = _launcher.load_launcher(worker_library, plan)
    for _ in range(3):
        with pytest.raises(ValueError, match="the worker failed"):
            run(torch.ones(1))


def test_failure_of_a_python_worker():
    def worker(*_):
        raise IndexError("in Python")

    with pytest.raises(IndexError, match="in Python"):
        launcher_of(tensor("A", N), worker=worker)(torch.ones(1))


def test_missing_entry_is_refused(worker_library):
    plan = renamed(plan_of(tensor("A", N)), "no_such_entry")
    with pytest.raises(AttributeError, match="no_such_entry"):
        _launcher.load_launcher(worker_library, plan)


def test_keyword_arguments_are_refused(add_one):
    with pytest.raises(TypeError, match="keyword"):
        add_one(torch.ones(3), B=torch.ones(3))
