"""tilelang.utils and tilelang.math: predicates, shapes, comparison of tensors, old spellings."""

from __future__ import annotations

import datetime

import pytest
import torch
from tvm import ir
from tvm import tirx as T

from tilelang import utils
from tilelang.errors import TraceTypeError
from tilelang.math import cdiv, next_power_of_2
from tilelang.utils.tensor import torch_assert_close


def buffer(shape=(4, 8), scope="global", **options):
    return T.decl_buffer(shape, "float32", "A", scope=scope, layout=None, **options)


@pytest.mark.parametrize(
    ("scope", "predicate"),
    [
        ("global", utils.is_global),
        ("shared", utils.is_shared),
        ("shared.dyn", utils.is_shared),
        ("shared.dyn", utils.is_shared_dynamic),
        ("shared.tmem", utils.is_tensor_memory),
        ("local", utils.is_local),
        ("local.var", utils.is_local_var),
        ("local.fragment", utils.is_fragment),
    ],
)
def test_scope_predicates(scope, predicate):
    a = buffer(scope=scope)
    assert predicate(a)
    assert predicate(a[0, 0])
    assert predicate(a[0:2, 0:2])
    other = "global" if scope != "global" else "local"
    assert not predicate(buffer(scope=other))


def test_static_shared_only():
    assert utils.is_shared(buffer(scope="shared"), allow_dynamic=False)
    assert not utils.is_shared(buffer(scope="shared.dyn"), allow_dynamic=False)


def test_shapes_and_strides():
    a = buffer()
    assert [int(e) for e in utils.retrieve_shape(a)] == [4, 8]
    assert [int(e) for e in utils.retrieve_shape(a[0:2, 3])] == [2, 1]
    assert [int(s) for s in utils.retrieve_stride(a)] == [8, 1]
    assert [int(s) for s in utils.retrieve_stride(buffer(strides=[16, 2]))] == [16, 2]
    assert utils.array_reduce([2, 3, 4]) == 24
    assert utils.array_reduce([]) == 1


def test_symbolic_strides():
    n = T.Var("n", "int32")
    first, last = utils.retrieve_stride(buffer((4, n)))
    assert first.same_as(n)
    assert last == 1


def test_regions():
    a = buffer()
    assert utils.is_full_region(utils.to_buffer_region(a))
    assert not utils.is_full_region(a[0:2, 0:8])
    tile = utils.to_buffer_region(a[1, 2], extents=[2, 4])
    assert [int(r.extent) for r in tile.region] == [2, 4]


def test_pointers():
    pointer = utils.retrive_ptr_from_buffer_region(buffer()[1:3, 2:4], "w")
    assert isinstance(pointer.ty, ir.PointerType)
    assert "10" in str(pointer)


def test_function_names():
    func = T.PrimFunc([], T.Evaluate(0))
    assert utils.get_prim_func_name(func) is None
    assert utils.get_prim_func_name(func, "none") == "none"
    assert utils.get_prim_func_name(func.with_attr("global_symbol", "f")) == "f"


def test_side_effects():
    n = T.Var("n", "int32")
    assert utils.side_effect(n + 1) == 1
    assert utils.side_effect(buffer()[n, 0]) == 2
    assert utils.side_effect(T.call_extern("int32", "f", n)) == 3


def test_math():
    assert [next_power_of_2(x) for x in (1, 2, 3, 64, 65)] == [1, 2, 4, 64, 128]
    assert [cdiv(7, 2), cdiv(8, 2), cdiv(-7, 2)] == [4, 4, -3]
    with pytest.raises(ValueError, match="positive integer, found 0"):
        next_power_of_2(0)


def test_close_tensors_agree():
    a = torch.randn(100)
    assert torch_assert_close(a, a + 1e-4)
    assert torch_assert_close(torch.empty(0), torch.empty(0))
    nan_inf = torch.tensor([float("nan"), float("inf"), -float("inf")])
    assert torch_assert_close(nan_inf, nan_inf.clone())


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.bool]
)
def test_every_kind_of_dtype_is_compared(dtype):
    a = torch.tensor([0, 1, 1, 0]).to(dtype)
    assert torch_assert_close(a, a.clone())
    b = torch.tensor([0, 1, 0, 0]).to(dtype)
    with pytest.raises(AssertionError, match="1 of 4 elements"):
        torch_assert_close(a, b)


def test_a_small_share_may_differ():
    a = torch.zeros(1000)
    b = a.clone()
    b[7] = 1
    assert torch_assert_close(a, b, max_mismatched_ratio=0.001)
    with pytest.raises(AssertionError, match=r"first at \(7,\): LHS 0.0, RHS 1.0"):
        torch_assert_close(a, b, max_mismatched_ratio=0.0005)


def test_large_integers_are_compared_exactly():
    a = torch.tensor([2**62, 2**62 + 1])
    b = torch.tensor([2**62, 2**62])
    with pytest.raises(AssertionError, match="1 of 2"):
        torch_assert_close(a, b, rtol=0, atol=0)


def test_verbose_prints_the_share(capsys):
    torch_assert_close(torch.ones(2), torch.ones(2), verbose=True, base_name="mine")
    assert "mine and RHS: 0 of 2 elements" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        (torch.ones(2), torch.ones(3), {}, r"shape differs: LHS has \(2,\), RHS has \(3,\)"),
        (torch.ones(2), torch.ones(2).half(), {}, "dtype differs"),
        (torch.ones(2, 3), torch.ones(3, 2).T, {"check_stride": True}, "stride differs"),
        (
            torch.tensor([float("nan")]),
            torch.tensor([float("nan")]),
            {"equal_nan": False},
            "1 of 1",
        ),
        (torch.tensor([1.0]), torch.tensor([float("inf")]), {}, "worst at"),
    ],
)
def test_differences_are_named(a, b, options, message):
    with pytest.raises(AssertionError, match=message):
        torch_assert_close(a, b, **options)


def test_dtype_check_can_be_off():
    assert torch_assert_close(torch.ones(2), torch.ones(2).half(), check_dtype=False)


def test_deprecated_functions_warn_at_the_caller():
    @utils.deprecated("old", "new", "2.0")
    def old(x):
        return x + 1

    with pytest.warns(DeprecationWarning, match="old is deprecated.*2.0, use new") as caught:
        assert old(1) == 2
    assert caught[0].filename == __file__
    assert old.__name__ == "old"


def test_build_date():
    assert utils.build_date("0.1.0+cpu.d20260102") == datetime.date(2026, 1, 2)
    assert utils.build_date("0.1.0") is None


def test_this_machine():
    assert utils.get_available_cpu_count() >= 1
    assert utils.get_current_device().split(":")[0] in ("cpu", "cuda", "mps")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: utils.is_global(3), "must be a buffer"),
        (lambda: utils.is_full_region(buffer()), "expected a region"),
        (lambda: utils.to_buffer_region(buffer(), "x"), "must be 'r', 'w' or 'rw'"),
        (lambda: utils.retrive_ptr_from_buffer_region(buffer(), "rx"), "found 'rx'"),
    ],
)
def test_wrong_operands(call, message):
    with pytest.raises(TraceTypeError, match=message):
        call()
