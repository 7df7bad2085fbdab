"""``T.print``, ``T.device_assert`` and ``assert`` on the CPU.

An assertion that fails makes the worker return an error, which the launcher raises when all
threads have stopped. Printing calls the function ``tl.cpu.print`` through the C interface of
tvm-ffi, the one library that compiled code always finds, so it runs in Python and its output goes
where that of ``print`` goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.errors import KernelAssertionError, render_span
from tilelang.ir import intrin
from tilelang.ir.dtype import declared_dtype
from tilelang.ir.expr import dtype_of
from tilelang.ir.region import region_extents, region_mins

__all__ = ["PRINT_FUNCTION", "lower_debug"]

PRINT_FUNCTION = "tl.cpu.print"

_RAW_STRING = 8  # type indices of a TVMFFIAny
_INTEGER = 1
Argument = str | int | ir.Expr


def lower_debug(func: T.PrimFunc) -> T.PrimFunc:
    """Lower the statements that print or check.

    Before: ``T.device_assert(x > 0, "message"); T.print(x)``. After: ``assert x > 0, "message at
    file:line"; shown[0] = x;`` a call of ``tl.cpu.print`` with the address of ``shown``.
    """
    blocks = _block_indices(func)

    def on_evaluate(stmt: T.Evaluate) -> T.Stmt:
        record = intrin.find(stmt.value) if isinstance(stmt.value, ir.Call) else None
        if record is None or record.name not in ("print", "device_assert"):
            return stmt
        if record.name == "print":
            return _print(stmt.value, blocks)
        condition, text = stmt.value.args
        return _assertion(_truth(condition), str(text.value), stmt.span)

    def on_assert(stmt: T.AssertStmt) -> T.Stmt:
        text = "".join(str(getattr(part, "value", part)) for part in stmt.message_parts)
        where = "" if stmt.span is None else f"\n{render_span(stmt.span)}"
        return _assertion(stmt.condition, f"{text}{where}", stmt.span)

    body = structural_map(func.body, [(T.Evaluate, on_evaluate), (T.AssertStmt, on_assert)])
    return func.with_body(body)


def _truth(condition: ir.Expr) -> ir.Expr:
    dtype = dtype_of(condition)
    return condition if dtype == "bool" else T.NE(condition, T.const(0, dtype))


def _assertion(condition: ir.Expr, text: str, span: ir.Span | None) -> T.AssertStmt:
    kind = ir.StringImm(KernelAssertionError.__name__)
    return T.AssertStmt(condition, kind, [ir.StringImm(text)], span)


def _block_indices(func: T.PrimFunc) -> list[ir.Var]:
    """The variables of the block loops, x first."""
    found: dict[str, ir.Var] = {}

    def on_for(loop: T.For) -> None:
        if loop.kind == T.ForKind.THREAD_BINDING:
            found[str(loop.thread_binding.thread_tag)] = loop.loop_var

    structural_walk(func.body, (T.For, on_for))
    return [found[tag] for tag in ("blockIdx.x", "blockIdx.y", "blockIdx.z") if tag in found]


# --- printing -----------------------------------------------------------------------------------


def _print(call: ir.Call, blocks: Sequence[ir.Var]) -> T.Stmt:
    span = call.span
    place = "" if span is None else f"{span.source_name.name}:{span.line}: "
    before: list[T.Stmt] = []
    if len(call.args) == 1:
        shown: list[Argument] = ["", "", 0, 0]
    elif isinstance(call.args[1], ir.TensorRegion):
        shown = _tile(call.args[1], int((call.attrs or {}).get("lead", 0)))
    else:
        before, shown = _scalar(call.args[1])
    arguments = [place, str(call.args[0].value), *shown, len(blocks), *blocks]
    return T.SeqStmt([*before, *_call_global(PRINT_FUNCTION, arguments, span)])


def _scalar(value: ir.Expr) -> tuple[list[T.Stmt], list[Argument]]:
    """Store a value where the printing function can read it."""
    cell = _local("shown", dtype_of(value), 1)
    stmts = [T.AllocBuffer(cell), T.BufferStore(cell, value, [0])]
    return stmts, ["", dtype_of(value), _address(cell[0]), 0]


def _tile(region: ir.TensorRegion, lead: int) -> list[Argument]:
    """What :func:`tilelang.cpu.print_value.print_value` takes to show a region.

    ``lead`` is 1 if the first dimension counts threads; only the current one is shown.
    """
    buffer, mins = region.source, region_mins(region)
    strides = list(buffer.ty.strides)[lead:]
    shape = list(buffer.shape)[lead:]
    thread: Any = T.const(0, "int64")
    for index in mins[:lead]:
        thread = index
    for extent in shape if lead else ():
        thread = thread * extent
    return [
        f"{buffer.name} = ",
        str(declared_dtype(buffer)),
        buffer.data,
        len(shape),
        thread,
        *shape,
        len(strides),
        *strides,
        *mins[lead:],
        *region_extents(region)[lead:],
    ]


# --- calling a function by name -----------------------------------------------------------------


def _local(name: str, dtype: str, size: int) -> ir.Var:
    return T.decl_buffer((size,), dtype, name, scope="local", layout=None, data_alignment=64)


def _address(element: ir.TensorLoad) -> ir.Expr:
    pointer = ir.PointerType(ir.PrimType(dtype_of(element)))
    return ir.Call(ir.Op.get("tirx.address_of"), [element], ret_ty=pointer)


def _bits(value: ir.Expr) -> ir.Expr:
    return ir.Call(ir.Op.get("tirx.reinterpret"), [value], ret_ty=ir.PrimType("int64"))


def _extern(name: str, *args: ir.Expr) -> ir.Expr:
    return ir.Call(ir.Op.get("tirx.call_extern"), [ir.StringImm(name), *args], ret_ty="int32")


def _int64(value: int) -> ir.Expr:
    return T.const(value, "int64")


def _call_global(name: str, arguments: Sequence[Argument], span: ir.Span | None) -> list[T.Stmt]:
    """Call the tvm-ffi function registered as ``name`` with texts, integers and addresses."""
    key, function = _local("name", "int64", 2), _local("function", "int64", 1)
    packed, result = _local("packed", "int64", 2 * len(arguments)), _local("result", "int64", 2)
    handle = ir.Call(
        ir.Op.get("tirx.reinterpret"), [function[0]], ret_ty=ir.PointerType(ir.PrimType("void"))
    )
    stmts: list[T.Stmt] = [T.AllocBuffer(cell) for cell in (key, function, packed, result)]
    stmts += [
        T.BufferStore(key, _bits(ir.StringImm(name)), [0]),
        T.BufferStore(key, _int64(len(name)), [1]),
        _succeeds(
            _extern("TVMFFIFunctionGetGlobal", _address(key[0]), _address(function[0])),
            f"{name} is not registered; import tilelang before the kernel runs",
            span,
        ),
    ]
    for position, argument in enumerate(arguments):
        kind, payload = _pack(argument)
        stmts.append(T.BufferStore(packed, _int64(kind), [2 * position]))
        stmts.append(T.BufferStore(packed, payload, [2 * position + 1]))
    count = T.const(len(arguments), "int32")
    stmts += [
        T.BufferStore(result, _int64(0), [0]),
        T.BufferStore(result, _int64(0), [1]),
        _succeeds(
            _extern("TVMFFIFunctionCall", handle, _address(packed[0]), count, _address(result[0])),
            f"{name} failed",
            span,
        ),
        T.Evaluate(_extern("TVMFFIObjectDecRef", handle)),
    ]
    return stmts


def _pack(argument: Argument) -> tuple[int, ir.Expr]:
    if isinstance(argument, str):
        return _RAW_STRING, _bits(ir.StringImm(argument))
    if isinstance(argument, int):
        return _INTEGER, _int64(argument)
    if isinstance(argument.ty, ir.PointerType):
        return _INTEGER, _bits(argument)
    wide = argument if dtype_of(argument) == "int64" else argument.astype("int64")
    return _INTEGER, wide


def _succeeds(status: ir.Expr, text: str, span: ir.Span | None) -> T.AssertStmt:
    holds = T.EQ(status, T.const(0, "int32"))
    return T.AssertStmt(holds, ir.StringImm("RuntimeError"), [ir.StringImm(text)], span)
