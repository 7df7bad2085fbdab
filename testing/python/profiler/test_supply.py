"""Generated inputs: ranges per supply type and dtype, symbolic sizes, packed types."""

from __future__ import annotations

import pytest
import torch
from tvm import tirx as T

from tilelang.engine.param import KernelParam
from tilelang.profiler.supply import make_inputs, resolve_shape, symbol_names
from tilelang.utils.tensor import TensorSupplyType

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int8", "int32", "int64", "uint8", "bool",
]  # fmt: skip


def supply(dtype, how, shape=(64, 32), **symbols):
    (value,) = make_inputs([KernelParam(dtype, shape, "x")], [], how, "cpu", symbols)
    return value


@pytest.mark.parametrize("how", TensorSupplyType)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_can_be_filled_in_every_way(dtype, how):
    value = supply(dtype, how)
    assert value.dtype == getattr(torch, dtype)
    assert value.shape == (64, 32)
    assert value.double().isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_and_ones(dtype):
    assert (supply(dtype, TensorSupplyType.Zero).double() == 0).all()
    assert (supply(dtype, TensorSupplyType.One).double() == 1).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "float8_e5m2", "int8", "int64"])
def test_integer_supply_holds_small_integers(dtype):
    value = supply(dtype, TensorSupplyType.Integer).double()
    assert set(value.unique().tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}


def test_unsigned_and_bool_integers():
    assert set(supply("uint8", TensorSupplyType.Auto).unique().tolist()) == {0, 1, 2, 3}
    assert set(supply("bool", TensorSupplyType.Auto).unique().tolist()) == {False, True}


def test_distributions():
    uniform = supply("float32", TensorSupplyType.Uniform)
    assert uniform.min() >= -1 and uniform.max() < 1 and uniform.min() < -0.9
    normal = supply("float32", TensorSupplyType.Normal)
    assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1 and normal.max() > 2
    eight = supply("float8_e4m3fn", TensorSupplyType.Auto).float()
    assert eight.abs().max() <= 1


@pytest.mark.parametrize("dtype", ["int4", "float4_e2m1fn"])
def test_packed_types_hold_two_elements_a_byte(dtype):
    value = supply(dtype, TensorSupplyType.Auto, shape=(8, 15))
    assert value.element_size() == 1
    assert value.shape == (8, 8)
    ones = supply(dtype, TensorSupplyType.One, shape=(2, 2)).view(torch.uint8)
    assert set(ones.flatten().tolist()) == {0x11 if dtype == "int4" else 0x22}


def test_symbolic_shapes_are_resolved_by_name():
    n, m = T.Var("n", "int32"), T.Var("m", "int32")
    param = KernelParam("float32", (n * 4 + 1, 8, n // m), "x")
    assert symbol_names(param) == ["n", "m"]
    assert resolve_shape(param, {"n": 6, "m": 3}) == (25, 8, 2)
    assert supply("float32", TensorSupplyType.Zero, (n, m), n=3, m=5).shape == (3, 5)


def test_outputs_are_left_out():
    params = [KernelParam("float32", (4,), name) for name in "abc"]
    assert len(make_inputs(params, [2], TensorSupplyType.Auto, "cpu")) == 2
    assert len(make_inputs(params, [0, 1], TensorSupplyType.Auto, "cpu")) == 1


def test_scalars_come_from_the_symbols():
    params = [
        KernelParam("float32", (), "alpha", is_tensor=False),
        KernelParam("int32", (), "n", is_tensor=False),
        KernelParam("float32", (T.Var("n", "int32"),), "x"),
    ]
    alpha, n, x = make_inputs(params, [], TensorSupplyType.Zero, "cpu", {"alpha": 1.5, "n": 3})
    assert (alpha, n, tuple(x.shape)) == (1.5, 3, (3,))


def test_every_missing_symbol_is_named():
    n, m = T.Var("n", "int32"), T.Var("m", "int32")
    params = [KernelParam("float32", (n, m), "x"), KernelParam("int32", (), "k", is_tensor=False)]
    with pytest.raises(ValueError, match="need a value for m, k: .*constraints={'m'"):
        make_inputs(params, [], TensorSupplyType.Auto, "cpu", {"n": 2})
