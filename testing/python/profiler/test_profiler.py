"""Profiler: comparing results, repeatability, timing; kernels are plain functions here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from tvm import tirx as T

from tilelang.engine.launch_plan import LaunchPlan, Param
from tilelang.engine.param import KernelParam
from tilelang.profiler import Profiler, TensorSupplyType

N = 16


def profiler_of(func, outputs=(), sizes=(N, N, N), access="rrw", supply=TensorSupplyType.Auto):
    """A profiler of a kernel ``func`` with tensor parameters a, b and c."""
    params = [
        KernelParam("float32", (size,), name) for name, size in zip("abc", sizes, strict=True)
    ]
    plan = LaunchPlan(
        "k",
        params=tuple(
            Param(name, "tensor", "float32", shape=(N,), access=how,
                  role="out" if i in outputs else "in")
            for i, (name, how) in enumerate(zip("abc", access, strict=True))
        ),
        returns=tuple(outputs),
    )  # fmt: skip
    adapter = SimpleNamespace(func=func, bundle=SimpleNamespace(plan=plan))
    return Profiler(params, outputs, supply).with_default_adapter(adapter)


def add_into(a, b, c):
    c.copy_(a + b)


RETURNING = profiler_of(lambda a, b: a + b, outputs=(2,))
IN_PLACE = profiler_of(add_into)


def test_returned_results_are_compared():
    RETURNING.assert_allclose(lambda a, b: b + a)


def test_written_parameters_are_compared_with_what_the_reference_returns():
    IN_PLACE.assert_allclose(lambda a, b, c: a + b)


def test_programs_that_both_write_in_place():
    IN_PLACE.assert_allclose(add_into)


def test_given_inputs_are_used_and_left_alone():
    a, b, c = torch.ones(N), torch.full((N,), 2.0), torch.zeros(N)
    IN_PLACE.assert_allclose(lambda x, y, z: torch.full((N,), 3.0), input_tensors=[a, b, c])
    assert (c == 0).all()


def test_references_may_use_a_wider_dtype():
    RETURNING.assert_allclose(lambda a, b: a.double() + b.double())


def test_manual_check_gets_both_lists():
    seen = []
    RETURNING.manual_assert_close(
        lambda a, b: a + b, manual_check_prog=lambda mine, ref: seen.append((mine, ref))
    )
    ((mine, reference),) = seen
    assert torch.equal(mine[0], reference[0])


def test_repeatable_kernels_are_consistent():
    RETURNING.assert_consistent(repeat=3)
    IN_PLACE.assert_consistent(repeat=3)
    profiler_of(lambda a, b: a / 0, outputs=(2,)).assert_consistent(repeat=2)


def test_run_once_runs_the_kernel_or_a_function():
    assert RETURNING.run_once().shape == (N,)
    assert RETURNING.run_once(lambda a, b: "other") == "other"
    ones = profiler_of(lambda a, b: a + b, outputs=(2,), supply=TensorSupplyType.One)
    assert (ones.run_once() == 2).all()


def test_calling_the_profiler_launches():
    assert torch.equal(RETURNING(torch.ones(N), torch.ones(N)), torch.full((N,), 2.0))
    assert RETURNING.device == torch.device("cpu")


def test_latency_is_positive():
    assert RETURNING.do_bench(warmup=1, rep=2) > 0
    assert len(RETURNING.do_bench(warmup=1, rep=2, quantiles=[0.2, 0.8])) == 2
    assert RETURNING.do_bench(func=lambda a, b: None, n_warmup=1, n_repeat=2) > 0


def test_symbolic_sizes_come_from_constraints_or_from_given_tensors():
    n = T.Var("n", "int32")
    seen = []

    def kernel(a, b):
        seen.append(a.shape[0])
        return a + b

    dynamic = profiler_of(kernel, outputs=(2,), sizes=(n, n, n))
    assert dynamic.do_bench(n_warmup=1, n_repeat=1, dynamic_symbolic_constraints={"n": 5}) > 0
    assert set(seen) == {5}
    seen.clear()
    dynamic.do_bench(n_warmup=1, n_repeat=1, input_tensors=[torch.ones(7), torch.ones(7)])
    assert set(seen) == {7}


def test_missing_symbols_are_named():
    n, m = T.Var("n", "int32"), T.Var("m", "int32")
    dynamic = profiler_of(lambda a, b: a, outputs=(2,), sizes=(n, m, n))
    with pytest.raises(ValueError, match="need a value for m"):
        dynamic.do_bench(dynamic_symbolic_constraints={"n": 5})


def test_a_wrong_result_is_reported_with_its_position():
    with pytest.raises(AssertionError, match="result 0 of the kernel and the reference do not"):
        RETURNING.assert_allclose(lambda a, b: a - b)


def test_a_wrong_in_place_result_is_reported():
    with pytest.raises(AssertionError, match="do not agree"):
        IN_PLACE.assert_allclose(lambda a, b, c: a - b)


def test_different_numbers_of_results():
    with pytest.raises(ValueError, match="1 results, the reference 2"):
        RETURNING.assert_allclose(lambda a, b: (a, b))


def test_an_unrepeatable_kernel_is_found():
    noisy = profiler_of(lambda a, b: a + torch.rand(N), outputs=(2,))
    with pytest.raises(AssertionError, match="result 0 of run 1 differs from run 0 in"):
        noisy.assert_consistent()


def test_manual_check_is_required():
    with pytest.raises(ValueError, match="needs manual_check_prog"):
        RETURNING.manual_assert_close(lambda a, b: a)
