"""The same formulas as C source: functions, conversions and integers agree with the contract."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from elementwise import float32_samples
from test_math_accuracy import BINARY, UNARY, exact
from test_math_integer import OPERATORS, edges, wrapped

import tilelang
import tilelang.language as T
from tilelang.testing.accuracy import assert_accurate

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

COUNT = 2048
FUNCTIONS = {name: getattr(T, name) for name in UNARY if name not in ("fabs", "round")} | {
    "fabs": T.abs,
    "round": lambda x: T.round(x, "ties-away-from-zero"),
}


def compiled(rows, dtype_in, dtype_out, inputs, body):
    """A C kernel with one row of results for each of ``rows`` expressions."""

    @T.prim_func
    def kernel(x: T.Tensor((inputs, COUNT), dtype_in), out: T.Tensor((rows, COUNT), dtype_out)):
        with T.Kernel(1, threads=1):
            for i in T.Parallel(COUNT):
                for row, value in enumerate(body(x, i)):
                    out[row, i] = value

    return tilelang.compile(kernel, out_idx=[1], target="c")


@pytest.fixture(scope="module")
def function_results():
    values = np.stack([float32_samples(COUNT, seed=s)[:COUNT] for s in (1, 2)])
    values[:, 16::2] = np.random.default_rng(3).uniform(-3, 3, values[:, 16::2].shape)

    def body(x, i):
        unary = [function(x[0, i]) for function in FUNCTIONS.values()]
        return unary + [getattr(T, name)(x[0, i], x[1, i]) for name in BINARY]

    kernel = compiled(len(FUNCTIONS) + len(BINARY), "float32", "float32", 2, body)
    rows = kernel(torch.from_numpy(values)).numpy()
    return values, dict(zip([*FUNCTIONS, *BINARY], rows, strict=True))


@pytest.mark.parametrize("name", [*FUNCTIONS, *BINARY])
def test_functions(name, function_results):
    values, rows = function_results
    want = exact(UNARY[name][0], values[0]) if name in UNARY else exact(BINARY[name], *values)
    assert_accurate(name, rows[name], want, "float32")


def test_conversions():
    targets = ["int8", "uint8", "int16", "int32", "uint32", "int64"]
    values = float32_samples(COUNT, seed=4)[:COUNT][None]
    values[0, 20:1000] = np.random.default_rng(5).uniform(-5e9, 5e9, 980)

    def body(x, i):
        return [T.cast(T.cast(x[0, i], target), "int64") for target in targets]

    rows = compiled(len(targets), "float32", "int64", 1, body)(torch.from_numpy(values)).numpy()
    for target, row in zip(targets, rows, strict=True):
        info = np.iinfo(target)
        for value, got in zip(values[0].tolist(), row.tolist(), strict=True):
            want = 0 if np.isnan(value) else int(np.clip(value, -1e19, 1e19))
            assert got == min(max(want, info.min), info.max)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_integers(dtype):
    every = edges(dtype)
    pairs = np.stack([np.repeat(every, every.size), np.tile(every, every.size)])
    values = np.stack([np.resize(row, COUNT) for row in pairs]).astype(dtype)

    def body(x, i):
        return [node(x[0, i], x[1, i]) for node in OPERATORS]

    raw = values.view(f"int{values.itemsize * 8}") if dtype in ("uint16", "uint64") else values
    tensor = torch.from_numpy(raw.copy()).view(getattr(torch, dtype))
    rows = compiled(len(OPERATORS), dtype, dtype, 2, body)(tensor).view(torch.from_numpy(raw).dtype)
    for node, row in zip(OPERATORS, rows.numpy().view(dtype), strict=True):
        bits = np.iinfo(dtype).bits
        want = [
            wrapped(OPERATORS[node](a, b, bits), dtype)
            for a, b in zip(*values.tolist(), strict=True)
        ]
        assert row.tolist() == want, node.__name__
