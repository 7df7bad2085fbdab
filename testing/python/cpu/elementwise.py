"""Compile one expression, or a function of buffers, and run it on arrays."""

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
def cpu_target(mcpu: str | None = None) -> Any:
    """Target ``llvm`` of this machine, or of ``mcpu``, with itself as host."""
    cpu = mcpu or tvm.get_global_func("target.llvm_get_system_cpu")()
    options = {"kind": "llvm", "mcpu": cpu}
    return tvm.target.Target(options, host=options)


def build_elementwise(
    expr_fn: Callable[..., ir.Expr],
    in_dtypes: Sequence[str],
    out_dtype: str,
    *,
    passes: Callable[[T.PrimFunc], T.PrimFunc] = lambda func: func,
    vector: bool = True,
    mcpu: str | None = None,
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
    return compile_function(passes(T.PrimFunc([*buffers, n], loop)), mcpu)


def compile_function(func: T.PrimFunc, mcpu: str | None = None) -> Callable[..., None]:
    """Lower and compile a function of buffers, called with flat arrays of the storage dtypes.

    A last scalar parameter, if there is one, is the number of elements of the first array.
    """
    buffers = [p for p in func.params if T.is_buffer_var(p)]
    scalars = [p for p in func.params if not T.is_buffer_var(p)]
    pointers = [T.Var(f"{b.name}_p", ir.PointerType(ir.PrimType(str(b.dtype)))) for b in buffers]
    declared = [T.DeclBuffer(b, data=p) for b, p in zip(buffers, pointers, strict=True)]
    inner = T.PrimFunc([*pointers, *scalars], T.stmt_seq(*declared, func.body))
    inner = inner.with_attr({"global_symbol": "body", "tirx.noalias": True})
    target = cpu_target(mcpu=mcpu)
    mod = tvm.transform.Sequential(
        [
            *(_P.FlattenBuffer(), _P.VectorizeLoop(True), _P.UnrollLoop(), _P.StmtSimplify()),
            *(_P.BindTarget(target), _P.LowerIntrin()),
        ]
    )(tvm.IRModule({"body": inner}))
    sizes = [T.Var(f"n{k}", "int64") for k in range(len(buffers))]
    outer = [
        T.decl_buffer((size,), str(b.dtype), b.name, layout=None, data_alignment=1)
        for b, size in zip(buffers, sizes, strict=True)
    ]
    arguments = [*[b.data for b in outer], *sizes[: len(scalars)]]
    callee = ir.Op.get("tirx.call_extern")
    call = ir.Call(callee, [ir.StringImm("body"), *arguments], ret_ty="int32")
    packed = T.PrimFunc(outer, T.Evaluate(call)).with_attr("global_symbol", "f")
    host = tvm.transform.Sequential(
        [
            *(_P.BindTarget(target), _P.FlattenBuffer(), _P.AnnotateEntryFunc()),
            *(_P.MakePackedAPI(), _P.LowerTVMBuiltin(), _P.LowerIntrin()),
        ]
    )(tvm.IRModule({"f": packed}))
    functions = {gv.name_hint: f for gv, f in host.functions.items()}
    functions["body"] = expand_numerics(mod["body"])
    built = tvm.get_global_func("target.build.llvm")(tvm.IRModule(functions), target)
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
