"""Elementwise functions, rounding forms, and what fast math does not change."""

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.contrib import nvcc

FAST = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}


def elementwise(function, dtype="float32", n=128, **options):
    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(n):
                B[i] = function(A[i])

    return tilelang.compile(main, out_idx=-1, **options)


FUNCTIONS = {
    "exp": torch.exp,
    "exp2": torch.exp2,
    "exp10": lambda x: (x * 2.302585092994046).exp(),
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "atan": torch.atan,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "erf": torch.erf,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "nearbyint": torch.round,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("options", [{"pass_configs": FAST}, {}], ids=["fast", "plain"])
@pytest.mark.devices("llvm", "c")
def test_functions_on_float32(name, options):
    a = torch.rand(128) * 3 + 0.1
    kernel = elementwise(getattr(T, name), **options)
    expected = FUNCTIONS[name](a.double()).float()
    torch.testing.assert_close(kernel(a), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.devices
def test_round_goes_to_even_and_on_request_away_from_zero():
    a = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 2.4]).repeat(16)
    even = elementwise(lambda x: T.round(x))(a)
    away = elementwise(lambda x: T.round(x, "ties-away-from-zero"))(a)
    assert even[:8].tolist() == [0, 2, 2, 0, -2, -2, 0, 2]
    assert away[:8].tolist() == [1, 2, 3, -1, -2, -3, 0, 2]


def test_an_unknown_rounding_mode_is_refused():
    with pytest.raises(ValueError, match="upwards"):
        elementwise(lambda x: T.round(x, "upwards"))


@pytest.mark.devices
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("function", "reference"),
    [(T.pow, torch.pow), (T.fmod, torch.fmod)],
    ids=["pow", "fmod"],
)
def test_pow_and_fmod_are_the_same_with_fast_math(function, reference, fast):
    a = torch.rand(128) * 4 + 0.5
    kernel = elementwise(lambda x: function(x, T.float32(1.7)), pass_configs=FAST if fast else {})
    torch.testing.assert_close(kernel(a), reference(a, torch.tensor(1.7)), rtol=1e-3, atol=1e-3)


@pytest.mark.devices("llvm", "c")
def test_a_likely_condition_is_the_condition():
    a = torch.randn(128)
    kernel = elementwise(lambda x: T.if_then_else(T.likely(x > 0), x, 0.0))
    assert torch.equal(kernel(a), a.relu())


@pytest.mark.devices
def test_abs():
    a = torch.randn(128)
    torch.testing.assert_close(elementwise(T.abs)(a), a.abs(), rtol=1e-5, atol=1e-5)


INTRINSICS = {
    "__exp": torch.exp,
    "__exp10": lambda x: 10**x,
    "__log": torch.log,
    "__log2": torch.log2,
    "__log10": torch.log10,
    "__tan": torch.tan,
    "__cos": torch.cos,
    "__sin": torch.sin,
}


@pytest.mark.devices
@pytest.mark.parametrize("name", INTRINSICS)
def test_approximate_functions(name):
    a = torch.rand(128) + 0.2
    found = elementwise(getattr(T, name))(a)
    torch.testing.assert_close(found, INTRINSICS[name](a), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("__exp", "ex2.approx"),
        ("__log", "lg2.approx"),
        ("__sin", "sin.approx"),
        ("__cos", "cos.approx"),
    ],
)
def test_approximate_functions_are_one_instruction_of_a_gpu(name, instruction):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                B[i] = getattr(T, name)(A[i])

    source = tilelang.lower(main, target={"kind": "cuda", "arch": "sm_90a"}).kernel_source
    ptx = nvcc.compile_cuda(source, "ptx", "sm_90a").decode()
    assert instruction in ptx and "bra" not in ptx


@pytest.mark.devices
def test_an_approximate_reciprocal():
    a = torch.rand(128) + 0.5
    torch.testing.assert_close(elementwise(T.fast_rcp)(a), 1 / a, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["__exp", "fast_rcp"])
def test_approximate_functions_need_floats(name):
    with pytest.raises((TypeError, ValueError)):
        elementwise(getattr(T, name), dtype="int32")


@pytest.mark.devices
@pytest.mark.parametrize("name", ["tan", "__tan"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_16_bit_tangent(name, dtype):
    a = torch.rand(128).to(T.dtype(dtype).as_torch())
    found = elementwise(getattr(T, name), dtype)(a)
    torch.testing.assert_close(found, torch.tan(a), rtol=1e-2, atol=1e-2)
