"""Device headers compiled by the host compiler, with the twins of the instruction headers."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tilelang.cuda.headers import include_dirs
from tilelang.interpreter.numbers import Dtype, dtype_named, from_bits, to_bits

COMPILER = shutil.which("g++") or shutil.which("c++")
requires_host_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

_PREFIX = r"""
#define __device__
#define __forceinline__ inline
#include <cmath>
#include <cstdint>
"""

CPP_TYPES = {
    "bool": "bool",
    "float32": "float",
    "float64": "double",
    "float16": "tl::half",
    "bfloat16": "tl::bfloat16",
    **{f"{s}int{b}": f"{s}int{b}_t" for s in ("", "u") for b in (8, 16, 32, 64)},
    **{
        name: f"tl::{name}"
        for name in (
            "int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
            "float8_e4m3b11fnuz", "float8_e3m4", "float8_e8m0fnu", "float6_e2m3fn",
            "float6_e3m2fn", "float4_e2m1fn",
        )
    },
}  # fmt: skip


def build(folder: Path, text: str) -> ctypes.CDLL:
    """Compile C++ text that includes device headers, and load it."""
    source, library = folder / "headers.cc", folder / "headers.so"
    source.write_text(_PREFIX + text)
    includes = [f"-I{path}" for path in include_dirs()]
    command = [COMPILER, "-std=c++17", "-O1", "-frounding-math", "-ffp-contract=off", "-w",
               "-fPIC", "-shared", *includes, str(source), "-o", str(library)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


def call(library: ctypes.CDLL, name: str, *arrays: np.ndarray) -> None:
    """``name(pointers..., count)`` over arrays of one length."""
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    getattr(library, name)(*pointers, ctypes.c_long(arrays[0].size))


@cache
def samples(name: str) -> np.ndarray:
    """Values of a dtype: all of 16 bits and less, else limits, powers of two and random ones."""
    kind = dtype_named(name)
    bits = 8 if kind.kind == "b" else kind.bits
    if kind.kind == "b":
        return np.array([False, True])
    if bits <= 16:
        codes = np.arange(1 << bits).astype(f"u{kind.itemsize}")
        return from_bits(codes, kind)
    rng = np.random.default_rng(bits)
    random = rng.integers(0, 2**bits, 20000, dtype=np.uint64).astype(f"u{bits // 8}")
    if kind.kind == "f":
        edges = [float(s) * 2.0**e * m for s in (1, -1) for e in range(-150, 130)
                 for m in (1.0, 1.5, 1 + 2**-11, 1 - 2**-12, 1.0625, 1.125)]  # fmt: skip
        edges += [0.0, -0.0, np.inf, -np.inf, np.nan, 448.0, 464.0, 57344.0, 61440.0, 65519.0]
        edges += [65520.0, 127.5, 128.0, 2147483647.0, 4294967295.0]
        near = np.array(edges, kind.carrier)
        near = np.concatenate([near, np.nextafter(near, kind.carrier.type(np.inf))])
        return np.concatenate([near, random.view(kind.carrier)])
    powers = [(1 << e) + d for e in range(bits) for d in (-1, 0, 1)]
    edges = np.array([p % 2**bits for p in powers], dtype=np.uint64).astype(f"u{bits // 8}")
    return np.concatenate([edges, random]).view(kind.carrier)


def agree(actual: np.ndarray, expected: np.ndarray, kind: Dtype) -> np.ndarray:
    """Whether two arrays of a dtype hold the same bits, all NaN being the same."""
    same = to_bits(actual, kind) == to_bits(expected, kind)
    if kind.kind == "f":
        both = [np.isnan(np.asarray(x).astype(np.float64)) for x in (actual, expected)]
        same |= both[0] & both[1]
    return same
