"""Every intrinsic of the table that CUDA has prints as something the headers offer."""

from __future__ import annotations

import pytest
from nvrtc_available import requires_nvrtc
from thread_programs import buffer, kernel, load, source, store
from tvm import ir
from tvm import tirx as T

from tilelang.cuda.compile import compile_source
from tilelang.errors import CodegenError
from tilelang.ir import intrin

_TYPES = {
    "float": ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn"),
    "int": ("int32", "uint32", "int64", "uint64", "int8", "uint16"),
    "number": ("float32", "int32", "float16", "uint64", "bfloat16"),
    "int32": ("int32",),
    "uint32": ("uint32",),
    "predicate": ("int32",),
    "element": ("float32", "float16", "int8"),
}
_PAIRS = ("add2", "sub2", "mul2", "fma2", "max2", "min2", "abs2")
# Statements, pointers, and what needs several grids.
_OTHER = {"assume", "access_ptr", "sync_grid", "sync_global"}


def _records():
    for record in intrin.intrinsics():
        usable = "cuda" in record.backends and not record.asynchronous and not record.variadic
        known = record.args and all(kind in _TYPES for kind in record.args)
        if usable and known and record.result != "void" and record.name not in _OTHER:
            yield record


def _dtypes(record):
    if record.name in _PAIRS:
        return ("float32x2", "float16x2", "bfloat16x2")
    if record.name == "cast_stochastic":
        return ("float32",)
    short = record.name not in ("nextafter",)
    return [kind for kind in _TYPES[record.args[0]] if short or not kind.startswith("float8")]


def _program(record):
    """One store a dtype, each of a call on elements of arrays of that dtype."""
    params, calls = [], []
    for dtype in _dtypes(record):
        matched = ("float", "int", "number", record.args[0])
        kinds = [dtype if kind in matched else kind for kind in record.args]
        args = [buffer(f"{dtype}_{i}", 32, "int32" if kind == "predicate" else kind)
                for i, kind in enumerate(kinds)]  # fmt: skip
        result = {"same": dtype, "given": "float16"}.get(record.result, record.result)
        if record.name == "round_tfloat32":
            result = "float32"
        out = buffer(f"{dtype}_out", 32, result)
        params += [*args, out]
        calls.append((out, args, result))

    def body(bx, tx):
        return [
            store(out, tx, ir.Call(record.op, [load(arg, tx) for arg in args],
                                   ret_ty=ir.PrimType(result)))
            for out, args, result in calls
        ]  # fmt: skip

    return kernel(params, body)


@requires_nvrtc
@pytest.mark.parametrize("record", [pytest.param(r, id=r.name) for r in _records()])
def test_intrinsic_compiles(record):
    binary = compile_source(source(_program(record)), "sm_80")
    assert binary.resources["kernel_0"].registers > 0


def test_the_table_was_read():
    names = {record.name for record in _records()}
    assert {"exp", "pow", "ieee_add_rz", "__exp", "popcount", "shfl_xor", "any_sync"} <= names


def test_an_operator_without_a_form_is_named():
    out = buffer("out", 32, "float32")
    call = ir.Call(
        ir.Op.get("tirx.vectorlow"), [T.const(1.0, "float32")], ret_ty=ir.PrimType("float32")
    )
    with pytest.raises(CodegenError, match="vectorlow has no CUDA form"):
        source(kernel([out], lambda bx, tx: [store(out, tx, call)]))
