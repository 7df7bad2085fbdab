"""Compile one expression into a function over arrays, and measure how far results are off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import tvm
from tvm import ir
from tvm import tirx as T

from tilelang.cpu.intrinsics.math import minifloat
from tilelang.cpu.transform.numerics.expand import expand_numerics

_P = T.transform
LANES = 16


@cache
def cpu_target(kind: str = "llvm", mcpu: str | None = None) -> Any:
    """Target ``llvm`` of this machine (or of ``mcpu``), its own host; the host of other kinds."""
    cpu = mcpu or tvm.get_global_func("target.llvm_get_system_cpu")()
    options = {"kind": kind, "mcpu": cpu} if kind == "llvm" else {"kind": kind}
    return tvm.target.Target(options, host=options)


def build_elementwise(
    expr_fn: Callable[..., ir.Expr],
    in_dtypes: Sequence[str],
    out_dtype: str,
    *,
    passes: Callable[[T.PrimFunc], T.PrimFunc] = lambda func: func,
    vector: bool = True,
    mcpu: str | None = None,
    simplify: bool = True,
) -> Callable[..., None]:
    """Compile ``out[i] = expr_fn(in0[i], in1[i], ...)``.

    The result takes flat numpy arrays of the storage dtypes (whole multiples of 16 elements), the
    output last. ``passes`` runs on the function with flat buffers, before any simplifier.
    """
    n = T.Var("n", "int64")
    names = [f"in{k}" for k in range(len(in_dtypes))] + ["out"]
    dtypes = [*in_dtypes, out_dtype]
    buffers = [
        T.decl_buffer((n,), dtype, name, layout=None, data_alignment=1)
        for name, dtype in zip(names, dtypes, strict=True)
    ]
    i, v = T.Var("i", "int64"), T.Var("v", "int64")
    at = i * LANES + v
    store = T.BufferStore(buffers[-1], expr_fn(*[b[at] for b in buffers[:-1]]), [at])
    kind = T.ForKind.VECTORIZED if vector else T.ForKind.SERIAL
    loop = T.For(i, 0, T.floordiv(n, LANES), T.ForKind.SERIAL, T.For(v, 0, LANES, kind, store))
    body = passes(T.PrimFunc([*buffers, n], loop))
    return _compile(body, mcpu, simplify)


def _compile(func: T.PrimFunc, mcpu: str | None, simplify: bool) -> Callable[..., None]:
    *params, n = func.params
    pointers = [T.Var(f"{b.name}_p", ir.PointerType(ir.PrimType(str(b.dtype)))) for b in params]
    inner = T.PrimFunc(
        [*pointers, n],
        T.stmt_seq(
            *[T.DeclBuffer(b, data=p) for b, p in zip(params, pointers, strict=True)], func.body
        ),
    ).with_attr({"global_symbol": "body", "tirx.noalias": True})
    target = cpu_target(mcpu=mcpu)
    lower = [_P.FlattenBuffer(), _P.VectorizeLoop(True), _P.UnrollLoop()]
    lower += [_P.StmtSimplify()] if simplify else []
    lower += [
        _P.BindTarget(target.without_host() if hasattr(target, "without_host") else target),
        _P.LowerIntrin(),
    ]
    mod = tvm.transform.Sequential(lower)(tvm.IRModule({"body": inner}))
    mod = tvm.IRModule({"body": expand_numerics(mod["body"])})
    size = T.Var("n", "int64")
    outer = [
        T.decl_buffer((size,), str(b.dtype), b.name, layout=None, data_alignment=1) for b in params
    ]
    call = ir.Call(
        ir.Op.get("tirx.call_extern"),
        [ir.StringImm("body"), *[b.data for b in outer], size],
        ret_ty="int32",
    )
    packed = T.PrimFunc(outer, T.Evaluate(call)).with_attr("global_symbol", "f")
    wrap = [_P.BindTarget(target), _P.FlattenBuffer(), _P.AnnotateEntryFunc(), _P.MakePackedAPI()]
    wrap += [_P.LowerTVMBuiltin(), _P.LowerIntrin()]
    host = tvm.transform.Sequential(wrap)(tvm.IRModule({"f": packed}))
    both = {gv.name_hint: f for m in (host, mod) for gv, f in m.functions.items()}
    built = tvm.get_global_func("target.build.llvm")(tvm.IRModule(both), target)
    function = built["f"]
    function.module = built
    return function


def storage(dtype: str) -> np.dtype:
    """The numpy dtype that arrays of ``dtype`` are passed as."""
    narrow = {"bfloat16": "uint16", "bool": "bool"}.get(dtype)
    if narrow is None and dtype.startswith(("float8", "float6", "float4")):
        narrow = minifloat.storage_dtype(dtype)
    return np.dtype(narrow or dtype)


def run(function: Any, out_dtype: str, *arrays: np.ndarray) -> np.ndarray:
    """Call a compiled elementwise function on arrays of any length."""
    count = arrays[0].size
    padded = -(-count // LANES) * LANES
    inputs = [np.resize(np.ascontiguousarray(a).ravel(), padded) for a in arrays]
    out = np.zeros(padded, storage(out_dtype))
    import torch

    as_tensor = [torch.from_numpy(a) for a in (*inputs, out)]
    function(*as_tensor)
    return out[:count]


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance of float32 or float64 ``got`` from ``want`` (wider), in units of got's last place.

    Equal infinities, and NaN for NaN, are 0 apart; a number for NaN or infinity is infinitely far.
    """
    exact = np.asarray(want)
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        exponent = np.frexp(np.where(np.isfinite(exact) & (exact != 0), np.abs(exact), 1.0))[1]
        unit = np.ldexp(
            exact.dtype.type(1), np.maximum(exponent - 1 - info.nmant, info.minexp - info.nmant)
        )
        distance = np.abs(got.astype(exact.dtype) - exact) / unit
        same = (got == rounded) & ~np.isfinite(rounded) | (np.isnan(got) & np.isnan(exact))
        broken = ~np.isfinite(got) | np.isnan(exact)
        distance = np.where(~np.isfinite(rounded) & np.isfinite(got), np.inf, distance)
        # overflow to infinity within half a step of the largest number is rounding, not an error
        return np.where(same, 0.0, np.where(broken, np.inf, distance))


def float32_samples(count: int, seed: int = 0) -> np.ndarray:
    """Floats of every exponent, with zeros, subnormals, infinities and NaN."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32)
    edge = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        0.5,
        2.0,
        1e-45,
        -1e-45,
        1.1754942e-38,
        1.1754944e-38,
        3.4028235e38,
        -3.4028235e38,
    ]
    return np.concatenate([np.array(edge, np.float32), bits.view(np.float32)])
