"""Binding of tensor arguments: what is accepted, what is refused and how."""

import numpy as np
import pytest
import torch
import tvm_ffi
from launch_helpers import K, M, N, bind, plan_of, scalar, tensor

from tilelang._native import make_binder
from tilelang.engine.launch_plan import Check
from tilelang.errors import ArgumentTypeError, ArgumentValueError


def symbol_values(bound, count):
    return bound.symbols[:count]


# -- kinds, count, dtypes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (None, "None"),
        (3, "int"),
        (2**70, "int"),
        (2.5, "float"),
        (True, "bool"),
        ("x", "str"),
        ([1, 2], "list or tuple"),
        ({"a": 1}, "dict"),
        (torch.float32, "dtype"),
        (object(), "object"),
        (len, "function"),
    ],
)
def test_wrong_kind_names_argument_expected_and_actual(value, got):
    message = rf"f: argument 'B' \(position 1\): expected float32 tensor \[n\], got {got}\n"
    with pytest.raises(TypeError, match=message):
        bind(tensor("A", N), tensor("B", N), args=[torch.ones(3), value])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32])
def test_wrong_dtype(dtype):
    name = str(dtype).removeprefix("torch.")
    with pytest.raises(ArgumentTypeError, match=rf"expected dtype float32, got {name}"):
        bind(tensor("A", N), args=[torch.ones(3).to(dtype)])


def test_wrong_count_names_the_missing_argument():
    with pytest.raises(TypeError, match="expected 2 arguments, got 1; 'B' is missing"):
        bind(tensor("A", N), tensor("B", N), args=[torch.ones(3)])
    with pytest.raises(TypeError, match="expected 1 argument, got 2\n"):
        bind(tensor("A", N), args=[torch.ones(3), torch.ones(3)])


def test_message_shows_the_signature():
    with pytest.raises(TypeError, match=r"in f\(A: float16\[n, n \* 4 \+ 1\], x: int32\)"):
        shape = (N, ("+", ("*", N, 4), 1))
        bind(tensor("A", *shape, dtype="float16"), scalar("x", "int32"), args=[])


def test_type_errors_come_before_value_errors():
    with pytest.raises(TypeError, match="'B'"):
        bind(tensor("A", 4), tensor("B", 4), args=[torch.ones(5), torch.ones(4).int()])


@pytest.mark.parametrize(
    ("declared", "actual"),
    [
        ("bool", torch.uint8),
        ("bool", torch.int8),
        ("uint8", torch.bool),
        ("float8_e4m3", torch.float8_e4m3fn),
        ("float8_e4m3fn", torch.uint8),
        ("float8_e8m0fnu", torch.uint8),
        ("float8_e3m4", torch.uint8),
        ("tfloat32", torch.float32),
    ],
)
def test_dtypes_torch_stores_otherwise_are_accepted(declared, actual):
    value = torch.zeros(4, dtype=torch.uint8).view(torch.uint8)
    value = value.view(actual) if actual.itemsize == 1 else torch.zeros(4, dtype=actual)
    bound = bind(tensor("A", N, dtype=declared), args=[value])
    assert bound.symbols[0] == 4


@pytest.mark.parametrize(
    ("declared", "actual"),
    [
        ("float8_e4m3fn", torch.float8_e5m2),
        ("float8_e4m3fn", torch.float8_e4m3fnuz),
        ("float8_e5m2", torch.int8),
        ("bool", torch.int32),
        ("int8", torch.uint8),
    ],
)
def test_dtypes_of_other_meaning_are_refused(declared, actual):
    with pytest.raises(TypeError, match=f"expected dtype {declared}"):
        bind(tensor("A", 4, dtype=declared), args=[torch.zeros(4, dtype=torch.uint8).to(actual)])


# -- shapes and symbols -----------------------------------------------------------------------


def test_rank_mismatch():
    with pytest.raises(ValueError, match=r"expected rank 2 \[n, 4\], got rank 1 \[4\]"):
        bind(tensor("A", N, 4), args=[torch.ones(4)])


def test_shape_mismatch_shows_all_symbols():
    with pytest.raises(ArgumentValueError) as caught:
        bind(tensor("A", N, M), tensor("B", M, K), args=[torch.ones(2, 3), torch.ones(4, 5)])
    text = str(caught.value)
    assert "argument 'B' (position 1): expected shape [m, k] = [3, 5], got [4, 5]" in text
    assert "with n = 2, m = 3, k = 5" in text


def test_fixed_shape_mismatch():
    with pytest.raises(ValueError, match=r"expected shape \[4, 8\], got \[8, 4\]"):
        bind(tensor("A", 4, 8), args=[torch.ones(8, 4)])


@pytest.mark.parametrize(
    ("expr", "extent", "solution"),
    [
        (("*", N, 4), 12, 3),
        (("+", N, 1), 12, 11),
        (("+", ("*", N, 3), 1), 10, 3),
        (("-", 20, N), 12, 8),
        (("-", ("*", 2, ("+", N, 3)), N), 12, 6),
        (("+", N, N), 12, 6),
    ],
)
def test_extents_linear_in_one_symbol_are_solved(expr, extent, solution):
    bound = bind(tensor("A", expr), args=[torch.ones(extent)])
    assert bound.symbols[0] == solution


@pytest.mark.parametrize(
    ("expr", "extent"), [(("*", N, 4), 13), (("+", ("*", N, 3), 1), 12), (("+", N, 5), 4)]
)
def test_extents_without_solution(expr, extent):
    with pytest.raises(
        ValueError, match=rf"'A'.*extent {extent} of dimension 0 is not of the form"
    ):
        bind(tensor("A", expr), args=[torch.ones(extent)])


def test_symbol_may_be_solved_with_the_help_of_others():
    product = tensor("P", ("*", N, M))
    bound = bind(tensor("A", N), product, args=[torch.ones(3), torch.ones(12)])
    assert symbol_values(bound, 2) == (3, 4)


def test_bare_symbols_are_preferred_to_expressions():
    half = tensor("A", ("*", N, 2))
    with pytest.raises(ValueError, match=r"'A'.*expected shape \[n \* 2\] = \[10\], got \[7\]"):
        bind(half, tensor("B", N), args=[torch.ones(7), torch.ones(5)])


def test_scalar_binds_a_symbol():
    params = tensor("A", ("+", ("*", N, 2), 1)), scalar("n", "int32", symbol=0)
    assert bind(*params, args=[torch.ones(9), 4]).symbols[0] == 4
    with pytest.raises(ValueError, match=r"expected shape \[n \* 2 \+ 1\] = \[11\], got \[9\]"):
        bind(*params, args=[torch.ones(9), 5])


def test_plan_whose_symbol_cannot_be_found_is_refused():
    plan = plan_of(tensor("A", ("*", N, N)))
    with pytest.raises(ValueError, match="value of symbol 'n' cannot be found"):
        make_binder(plan)


def test_host_assertion():
    checks = (Check(("==", ("%", N, 8), 0), "n must be a multiple of 8"),)
    assert bind(tensor("A", N), args=[torch.ones(16)], checks=checks).symbols[0] == 16
    with pytest.raises(ValueError, match=r"f: n must be a multiple of 8\n.*\n  with n = 9"):
        bind(tensor("A", N), args=[torch.ones(9)], checks=checks)


# -- strides, alignment, emptiness ------------------------------------------------------------


def test_compact_is_demanded_without_declared_strides():
    with pytest.raises(
        ValueError,
        match=r"contiguous tensor, got strides \[1, 4\] for shape \[3, 4\]|"
        r"contiguous tensor, got strides \[1, 3\] for shape \[3, 4\]",
    ):
        bind(tensor("A", N, M), args=[torch.ones(4, 3).t()])


def test_strides_of_unit_and_empty_dimensions_are_free():
    unit = torch.ones(3, 4).t()[:1].t()
    assert unit.shape == (3, 1)
    assert unit.stride() == (4, 1)
    bind(tensor("A", N, M), args=[torch.ones(1, 4).as_strided((1, 4), (99, 1))])
    bind(tensor("A", N, M), args=[torch.empty(0, 4).as_strided((0, 4), (7, 3))])
    with pytest.raises(ValueError, match="contiguous"):
        bind(tensor("A", N, M), args=[unit])


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(6, 8)[:, 2:5],
        lambda: torch.ones(8, 6).t(),
        lambda: torch.ones(3).expand(5, 3),
        lambda: torch.ones(5, 3),
    ],
)
def test_declared_symbolic_strides_accept_any_layout(make):
    value = make()
    param = tensor("A", 5 if value.shape[0] == 5 else 6, value.shape[1], strides=(N, M))
    assert symbol_values(bind(param, args=[value]), 2) == value.stride()


def test_negative_strides_are_bound():
    value = np.ones((4, 4), np.float32)[::-1]
    bound = bind(tensor("A", 4, 4, strides=(N, 1)), args=[value])
    assert bound.symbols[0] == -4
    assert bound.kernels[0].slots[0] == value.ctypes.data


def test_declared_strides_are_checked():
    param = tensor("A", 4, 4, strides=(8, 1))
    bind(param, args=[torch.ones(4, 8)[:, :4]])
    with pytest.raises(ValueError, match=r"expected strides \[8, 1\], got \[4, 1\]"):
        bind(param, args=[torch.ones(4, 4)])


def test_address_includes_the_offset_of_a_view():
    base = torch.arange(10, dtype=torch.float32)
    bound = bind(tensor("A", N), args=[base[3:]])
    assert bound.kernels[0].slots == (base.data_ptr() + 12,)


def test_unaligned_views_are_legal():
    raw = torch.zeros(33, dtype=torch.uint8)
    value = torch.from_numpy(np.frombuffer(raw.numpy()[1:], np.float32))
    assert value.data_ptr() % 4 != 0
    assert bind(tensor("A", N), args=[value]).kernels[0].slots == (value.data_ptr(),)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0)])
def test_zero_size_tensors_are_legal(shape):
    bound = bind(tensor("A", *(N, M)[: len(shape)]), args=[torch.empty(shape)])
    assert symbol_values(bound, len(shape)) == shape


def test_rank_zero_tensor():
    assert bind(tensor("A"), args=[torch.tensor(1.0)]).kernels[0].entry == "kernel"


# -- None -------------------------------------------------------------------------------------


def test_none_for_a_tensor_the_kernel_never_touches():
    params = tensor("A", N), tensor("bias", N, access="none")
    bound = bind(*params, args=[torch.ones(4), None])
    assert bound.kernels[0].slots[1] == 0
    with pytest.raises(TypeError, match="expected dtype"):
        bind(*params, args=[torch.ones(4), torch.ones(4).int()])


def test_symbols_only_of_a_none_tensor():
    optional = tensor("bias", M, access="none")
    assert bind(tensor("A", N), optional, args=[torch.ones(4), None]).symbols[0] == 4
    with pytest.raises(ValueError, match="symbol 'm' cannot be found"):
        bind(tensor("A", N), optional, args=[torch.ones(4), None], grid=(M, 1, 1))


# -- devices and frameworks -------------------------------------------------------------------


def test_wrong_device():
    with pytest.raises(ValueError, match="expected a tensor on cuda, got one on cpu"):
        bind(tensor("A", N, device="cuda"), args=[torch.ones(3)])


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(4, requires_grad=True),
        torch.nn.Parameter(torch.ones(4)),
        np.ones(4, np.float32),
        tvm_ffi.from_dlpack(torch.ones(4)),
    ],
    ids=["requires_grad", "Parameter", "numpy", "tvm_ffi"],
)
def test_array_types(value):
    assert bind(tensor("A", N), args=[value]).symbols[0] == 4


# -- packed dtypes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "stored"),
    [
        ("int4", torch.int8),
        ("int4", torch.uint8),
        ("uint4", torch.uint8),
        ("float4_e2m1fn", torch.float4_e2m1fn_x2),
        ("float4_e2m1fn", torch.int8),
    ],
)
def test_sub_byte_tensors_hold_two_elements_a_byte(declared, stored):
    value = torch.zeros(3, 16, dtype=torch.uint8).view(stored)
    assert symbol_values(bind(tensor("A", N, M, dtype=declared), args=[value]), 2) == (3, 32)
    bind(tensor("A", 3, 32, dtype=declared), args=[value])
    bind(tensor("A", 3, 31, dtype=declared), args=[value])
    with pytest.raises(ValueError, match=rf"got \[3, 16\] of .*, each holding 2 x {declared}"):
        bind(tensor("A", 3, 16, dtype=declared), args=[value])


def test_pair_dtype_keeps_the_extent():
    value = torch.zeros(3, 16, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    bound = bind(tensor("A", N, M, dtype="float4_e2m1fnx2"), args=[value])
    assert symbol_values(bound, 2) == (3, 16)


def test_sub_byte_strides_count_elements():
    value = torch.zeros(4, 32, dtype=torch.int8)[:, :16]
    param = tensor("A", 4, 32, dtype="int4", strides=(N, 1))
    assert bind(param, args=[value]).symbols[0] == 64


def test_sub_byte_extent_prefers_an_exact_source():
    params = tensor("A", N, dtype="int4"), tensor("B", N)
    value = torch.zeros(4, dtype=torch.int8)
    assert bind(*params, args=[value, torch.ones(7)]).symbols[0] == 7
    with pytest.raises(ValueError, match="'A'"):
        bind(*params, args=[value, torch.ones(9)])
