"""Wrap a block's body into a worker: a function over a range of linear block ids.

The computation becomes a C function with raw pointers, so that LLVM sees which tensors do not
alias and accumulators stay in registers. A thin function with the calling convention of tvm-ffi
unpacks its arguments (slots, begin, end, scratch) and calls it.
"""

from __future__ import annotations

from typing import Any

from tvm import DataType, ir
from tvm import tirx as T

from tilelang.cpu.intrinsics.math import ops
from tilelang.cpu.transform.early_return import end_block
from tilelang.ir.expr import dtype_of, is_buffer
from tilelang.transform.flatten import flatten_buffers

__all__ = ["block_loop", "make_worker", "pointer_body"]

_VALUE_FIELD = 15  # tvm_struct_get: the payload of a TVMFFIAny


def _call(name: str, args: list[Any], ret: Any) -> ir.Call:
    return ir.Call(ir.Op.get(name), args, ret_ty=ret)


def block_loop(func: T.PrimFunc) -> T.PrimFunc:
    """Replace the block loops of the launch by one loop over linear ids [begin, end).

    Adds the parameters ``begin`` and ``end`` (int64). Ids count x fastest, then y, then z.
    """
    prefix: list[T.Stmt] = []
    stmt: Any = func.body
    while isinstance(stmt, T.SeqStmt):
        prefix.extend(stmt.seq[:-1])
        stmt = stmt.seq[len(stmt.seq) - 1]
    begin, end, block = (T.Var(name, "int64") for name in ("begin", "end", "block"))
    binds: list[T.Stmt] = []
    linear: ir.Expr = block
    axes: list[T.For] = []
    while isinstance(stmt, T.For) and stmt.kind == T.ForKind.THREAD_BINDING:
        axes.append(stmt)
        stmt = stmt.body
    for position, axis in enumerate(axes):
        extent = axis.extent.astype("int64")
        last = position == len(axes) - 1
        # Neither is negative, so that truncating divisions do.
        index = linear if last else T.truncmod(linear, extent)
        linear = linear if last else T.truncdiv(linear, extent)
        dtype = dtype_of(axis.loop_var)
        index = index.astype(dtype)
        if len(axes) > 1:  # a simplifier would repeat the divisions wherever the index is used
            index = ops.call("keep", dtype, index, span=axis.span)
        binds.append(T.Bind(axis.loop_var, index, axis.span))
    body = T.stmt_seq(*prefix, *binds, end_block(stmt))
    loop = T.For(block, begin, end - begin, T.ForKind.SERIAL, body, span=func.span)
    return T.PrimFunc([*func.params, begin, end], loop, attrs=func.attrs, span=func.span)


def pointer_body(func: T.PrimFunc) -> T.PrimFunc:
    """Flatten the buffers and turn the tensor parameters into pointers.

    The result returns 0, or -1 with an error set where an assertion fails.
    """
    func, flat = flatten_buffers(func)
    params: list[ir.Var] = []
    declarations: list[T.Stmt] = []
    for param in func.params:
        if not is_buffer(param):
            params.append(param)
            continue
        pointer = T.Var(param.name, ir.PointerType(ir.PrimType(dtype_of(param)), "global"))
        params.append(pointer)
        declarations.append(T.DeclBuffer(flat[param], data=pointer, span=param.span))
    success = T.Return(T.const(0, "int32"))
    body = T.stmt_seq(*declarations, func.body, success)
    returns = ir.PrimType("int32")
    return T.PrimFunc(params, body, ret_type=returns, attrs=func.attrs, span=func.span)


def make_worker(name: str, body: T.PrimFunc) -> tuple[T.PrimFunc, T.PrimFunc]:
    """The packed worker ``__tvm_ffi_<name>`` and the C function it calls.

    ``body`` takes the kernel arguments, then begin, end and scratch.
    """
    *kernel_params, _, _, _ = body.params
    self_handle, args, result = (T.Var(n, "handle") for n in ("self", "args", "result"))
    count = T.Var("num_args", "int32")

    def argument(index: int, dtype: Any) -> ir.Expr:
        return _call(
            "tirx.tvm_struct_get",
            [args, T.const(index, "int32"), T.const(_VALUE_FIELD, "int32")],
            dtype,
        )

    slots = T.Var("slots", ir.PointerType(ir.PrimType("uint64"), "global"))
    table = T.decl_buffer(
        (max(1, len(kernel_params)),), "uint64", "slot", layout=None, data_alignment=8
    )
    values = [_slot_value(table, index, param) for index, param in enumerate(kernel_params)]
    callee = f"{name}_body"
    call = _call(
        "tirx.call_extern",
        [
            ir.StringImm(callee),
            *values,
            argument(1, "int64"),
            argument(2, "int64"),
            argument(3, "handle"),
        ],
        "int32",
    )
    stmts = [
        T.Bind(slots, _call("tirx.reinterpret", [argument(0, "handle")], slots.ty)),
        T.DeclBuffer(table, data=slots),
        _failure_passes(call),
        T.Return(T.const(0, "int32")),
    ]
    worker = T.PrimFunc(
        [self_handle, args, count, result], T.SeqStmt(stmts), ret_type=ir.PrimType("int32")
    )
    worker = worker.with_attr("global_symbol", f"__tvm_ffi_{name}").with_attr("calling_conv", 1)
    alias_free = "tl.may_alias" not in (body.attrs or {})
    outlined = body.with_attr("global_symbol", callee).with_attr("tirx.noalias", alias_free)
    outlined = outlined.with_attr("tl.entry", name)
    return worker, outlined


def _failure_passes(call: ir.Call) -> T.Stmt:
    """Return -1 where the callee did; it has set the error."""
    failed = T.NE(call, T.const(0, "int32"))
    return T.IfThenElse(failed, T.Evaluate(_call("tirx.tvm_throw_last_error", [], "int32")), None)


def _slot_value(table: ir.Var, index: int, param: ir.Var) -> ir.Expr:
    """Slot ``index`` as the value of ``param``: an address, or the low bytes of the slot."""
    raw = table[index]
    if isinstance(param.ty, ir.PointerType) or dtype_of(param) == "handle":
        return _call("tirx.reinterpret", [raw], param.ty)
    dtype = dtype_of(param)
    if dtype == "bool":
        return T.NE(raw, T.const(0, "uint64"))
    bits = DataType(dtype).bits
    narrow = raw if bits == 64 else raw.astype(f"uint{bits}")
    return narrow if dtype == f"uint{bits}" else T.reinterpret(dtype, narrow)
