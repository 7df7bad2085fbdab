"""Arithmetic of the device headers on short floats and integers, against the interpreter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from host_headers import CPP_TYPES, agree, build, call, requires_host_compiler, samples

from tilelang.interpreter.numbers import dtype_named, from_bits, round_float, to_bits
from tilelang.ir import intrin
from tilelang.ir.extremes import larger, smaller

# NaN and overflow are among the samples.
pytestmark = [requires_host_compiler, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

_FLOATS = ("float16", "bfloat16")
_BINARY = {
    "add": ("x + y", lambda a, b: a + b),
    "sub": ("x - y", lambda a, b: a - b),
    "mul": ("x * y", lambda a, b: a * b),
    "div": ("x / y", lambda a, b: a / b),
    "max": ("tl::max(x, y)", larger),
    "min": ("tl::min(x, y)", smaller),
}
_COMPARE = {
    "lt": ("x < y", np.less),
    "le": ("x <= y", np.less_equal),
    "gt": ("x > y", np.greater),
    "ge": ("x >= y", np.greater_equal),
    "eq": ("x == y", np.equal),
    "ne": ("x != y", np.not_equal),
}
_INTEGER = {
    "add": "tl::wrap_add(x, y)",
    "sub": "tl::wrap_sub(x, y)",
    "mul": "tl::wrap_mul(x, y)",
    "truncdiv": "tl::trunc_div(x, y)",
    "truncmod": "tl::trunc_mod(x, y)",
    "floordiv": "tl::floor_div(x, y)",
    "floormod": "tl::floor_mod(x, y)",
    "shl": "tl::shift_left(x, y)",
    "shr": "tl::shift_right(x, y)",
}
_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_MODES = ("rn", "rz", "ru", "rd")
_ROUNDED = {"add": 2, "sub": 2, "mul": 2, "fdiv": 2, "fmaf": 3, "frcp": 1, "fsqrt": 1}
_IEEE_TYPES = ("float16", "bfloat16", "float32", "float64")

_SOURCE = """
#include <tl/ieee.h>
#include <tl/integer.h>
#include <tl/minmax.h>
#include <tl/stochastic.h>
struct { unsigned x, y, z; } blockIdx, threadIdx, gridDim, blockDim;
#include <tl/rng.h>
extern "C" void philox(unsigned* x, long n) {
  tl::rng_state state;
  state.start(0, 0, 0);
  for (long i = 0; i < n; ++i) x[i] = state.next();
}
#define BINARY(N, T, R, E) extern "C" void N(const T* a, const T* b, R* c, long n) { \\
  for (long i = 0; i < n; ++i) { const T x = a[i], y = b[i]; c[i] = E; } }
#define COUNT(N, T, E) extern "C" void N(const T* a, int* c, long n) { \\
  for (long i = 0; i < n; ++i) { const T x = a[i]; c[i] = E; } }
#define TERNARY(N, T, E) extern "C" void N(const T* a, const T* b, const T* c, T* d, long n) { \\
  for (long i = 0; i < n; ++i) { const T x = a[i], y = b[i], z = c[i]; d[i] = E; } }
extern "C" void stochastic(const float* a, const unsigned* b, tl::half* c, tl::bfloat16* d,
                           tl::float8_e4m3fn* e, tl::float8_e5m2* f, long n) {
  for (long i = 0; i < n; ++i) {
    c[i] = tl::cast_stochastic<tl::half>(a[i], b[i]);
    d[i] = tl::cast_stochastic<tl::bfloat16>(a[i], b[i]);
    e[i] = tl::cast_stochastic<tl::float8_e4m3fn>(a[i], b[i]);
    f[i] = tl::cast_stochastic<tl::float8_e5m2>(a[i], b[i]);
  }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    lines = [_SOURCE]
    for kind in _FLOATS:
        lines += [f"BINARY({n}_{kind}, {CPP_TYPES[kind]}, {CPP_TYPES[kind]}, {text})"
                  for n, (text, _) in _BINARY.items()]  # fmt: skip
        lines += [f"BINARY({n}_{kind}, {CPP_TYPES[kind]}, bool, {text})"
                  for n, (text, _) in _COMPARE.items()]  # fmt: skip
    for kind in _INTEGERS:
        lines += [f"BINARY({n}_{kind}, {CPP_TYPES[kind]}, {CPP_TYPES[kind]}, {text})"
                  for n, text in _INTEGER.items()]  # fmt: skip
        lines += [f"COUNT({n}_{kind}, {CPP_TYPES[kind]}, tl::{n}(x))"
                  for n in ("popcount", "clz", "ffs")]  # fmt: skip
    for (name, arity), mode, kind in itertools.product(_ROUNDED.items(), _MODES, _IEEE_TYPES):
        args = ", ".join("xyz"[:arity])
        lines.append(f"TERNARY(ieee_{name}_{mode}_{kind}, {CPP_TYPES[kind]}, "
                     f"tl::ieee_{name}_{mode}({args}))")  # fmt: skip
    return build(tmp_path_factory.mktemp("headers"), "\n".join(lines))


def _pairs(kind, count=200_000):
    """Pairs of values: edges with edges, and random ones."""
    values = samples(kind)
    rng = np.random.default_rng(7)
    edges = values if values.size <= 256 else rng.choice(values, 256, replace=False)
    grid = np.array(np.meshgrid(edges, edges)).reshape(2, -1)
    random = [values[rng.integers(0, values.size, count)] for _ in range(2)]
    return [np.concatenate([grid[i], random[i]]) for i in range(2)]


def _run(library, name, kind, *values, result=None):
    arrays = [np.ascontiguousarray(to_bits(v, dtype_named(kind))) for v in values]
    out = np.zeros(arrays[0].size, result or arrays[0].dtype)
    call(library, name, *arrays, out)
    return out


@pytest.mark.parametrize("operation", _BINARY)
@pytest.mark.parametrize("kind", _FLOATS)
def test_short_floats_round_once(library, kind, operation):
    a, b = _pairs(kind)
    with np.errstate(all="ignore"):
        exact = _BINARY[operation][1](a.astype(np.float64), b.astype(np.float64))
        expected = round_float(exact, dtype_named(kind))
    actual = from_bits(_run(library, f"{operation}_{kind}", kind, a, b), dtype_named(kind))
    zeros = (np.asarray(exact) == 0) & (operation in ("max", "min"))  # of either sign
    assert (agree(actual, expected, dtype_named(kind)) | zeros).all()


@pytest.mark.parametrize("operation", _COMPARE)
@pytest.mark.parametrize("kind", _FLOATS)
def test_short_floats_compare(library, kind, operation):
    a, b = _pairs(kind)
    actual = _run(library, f"{operation}_{kind}", kind, a, b, result=np.bool_)
    expected = _COMPARE[operation][1](a.astype(np.float32), b.astype(np.float32))
    assert (actual == expected).all()


def _integer(operation, bits, signed, a, b):
    def wrap(value):
        value %= 1 << bits
        return value - (1 << bits) if signed and value >> (bits - 1) else value

    if operation in ("add", "sub", "mul"):
        return wrap({"add": a + b, "sub": a - b, "mul": a * b}[operation])
    if operation == "shl":
        return wrap(a << b) if 0 <= b < bits else 0
    if operation == "shr":
        return a >> (b if 0 <= b < bits else bits)
    if b == 0:
        return 0
    if operation.startswith("floor"):
        return wrap(a // b if operation == "floordiv" else a % b)
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return wrap(quotient if operation == "truncdiv" else a - quotient * b)


@pytest.mark.parametrize("operation", _INTEGER)
@pytest.mark.parametrize("kind", _INTEGERS)
def test_integers_are_what_the_language_says(library, kind, operation):
    a, b = _pairs(kind, count=4000)
    if operation.startswith("sh"):  # amounts around the width
        b = np.concatenate([b[: b.size // 2], b[b.size // 2 :] % b.dtype.type(70)])
    actual = _run(library, f"{operation}_{kind}", kind, a, b).view(a.dtype)
    bits, signed = dtype_named(kind).bits, not kind.startswith("u")
    expected = [_integer(operation, bits, signed, int(x), int(y))
                for x, y in zip(a, b, strict=True)]  # fmt: skip
    assert actual.tolist() == expected


@pytest.mark.parametrize("function", ["popcount", "clz", "ffs"])
@pytest.mark.parametrize("kind", _INTEGERS)
def test_counts_of_bits(library, kind, function):
    values = samples(kind)
    actual = _run(library, f"{function}_{kind}", kind, values, result=np.int32)
    record = intrin.get("__ffs" if function == "ffs" else function)
    expected = record.reference(("int32", kind), values)
    assert (actual == expected).all()


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("name", _ROUNDED)
@pytest.mark.parametrize("kind", _IEEE_TYPES)
def test_directed_rounding(library, kind, name, mode):
    rng = np.random.default_rng(11)
    operands = [rng.choice(samples(kind), 1500) for _ in range(3)]
    # Sums that cancel, and results near the ends of the range, are rare among random bits.
    operands[2][:500] = -operands[0][:500]
    operands[1][:250] = operands[0].dtype.type(1)
    out = _run(library, f"ieee_{name}_{mode}_{kind}", kind, *operands)
    actual = from_bits(out, dtype_named(kind))
    exact = [v.astype(np.float64) for v in operands[: _ROUNDED[name]]]
    record = intrin.get(f"ieee_{name}_{mode}")
    expected = round_float(record.reference((kind,), *exact), dtype_named(kind))
    wrong = np.flatnonzero(~agree(actual, expected, dtype_named(kind)))
    assert not wrong.size, [([v[i] for v in exact], actual[i], expected[i]) for i in wrong[:5]]


def test_random_numbers_are_those_of_philox(library):
    """The known answer for a zero counter and key."""
    numbers = np.zeros(8, np.uint32)
    call(library, "philox", numbers)
    first = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert numbers[:4].tolist() == first and len(set(numbers.tolist())) == 8


def test_stochastic_rounding(library):
    values = samples("float32")
    noise = np.random.default_rng(3).integers(0, 2**32, values.size, dtype=np.uint32)
    kinds = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
    outs = [np.zeros(values.size, f"u{dtype_named(kind).itemsize}") for kind in kinds]
    call(library, "stochastic", values, noise, *outs)
    record = intrin.get("cast_stochastic")
    for kind, out in zip(kinds, outs, strict=True):
        with np.errstate(all="ignore"):
            exact = record.reference((kind,), values, noise)
            expected = round_float(exact, dtype_named(kind))
        actual = from_bits(out, dtype_named(kind))
        wrong = np.flatnonzero(~agree(actual, expected, dtype_named(kind)))
        assert not wrong.size, (kind, [(values[i], actual[i], expected[i]) for i in wrong[:5]])
