"""Atomic updates of tensors by blocks that run at the same time.

An update takes part in three passes. :func:`commuting_updates` tells which ones may run at the
same time with the same result; those become a store whose value is the call ``tl.cpu.update``, so
that bounds are guarded as for any store. :func:`lower_updates` turns the stores into calls of
helper functions, whose text :func:`define_updates` adds for LLVM; C has them in its preamble.
"""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_visit, structural_walk

from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.op import ELEMENT_ATOMIC

__all__ = [
    "commuting_updates",
    "define_updates",
    "lower_updates",
    "update_store",
    "worth_sharing",
]

_INTEGERS = {f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_FLOATS = {"float32": "float", "float64": "double"}
_TYPES = {**_INTEGERS, **_FLOATS}
_PREFIX = "tl_atomic_"
_UNKNOWN_TRIPS = 8
_STEPS_AN_ATOMIC = 16

if "tl.cpu.update" not in set(ir.Op.list_op_names()):
    ir.register_op_attr("tl.cpu.update", "TCallEffectKind", 3)
_UPDATE = ir.Op.get("tl.cpu.update")


def _instruction(kind: str, dtype: str) -> str | None:
    """The operation of LLVM's ``atomicrmw``, or None if there is none."""
    if dtype in _FLOATS:
        # Not the greater of two zeros: which one stays would depend on the order.
        return {"add": "fadd"}.get(kind)
    if dtype not in _INTEGERS:
        return None
    unsigned = "u" if dtype.startswith("u") else ""
    return {"add": "add", "max": f"{unsigned}max", "min": f"{unsigned}min", "or": "or"}.get(kind)


def commuting_updates(func: T.PrimFunc) -> bool:
    """Whether all atomics of ``func`` on tensors give one result in every order of the blocks.

    So they do if nothing sees the element before an update, each updated tensor takes updates of
    one kind only, and the blocks touch it in no other way. Sums of floats depend on the order by
    their rounding, which is unspecified.
    """
    kinds: dict[ir.Var, set[str]] = {}
    touched: set[ir.Var] = set()
    ordered = False

    def on_evaluate(stmt: T.Evaluate, visitor: Any) -> None:
        call = stmt.value
        if not _is_atomic(call) or call.args[0].source.scope() != "global":
            visitor.default_visit(stmt)
            return
        target = call.args[0]
        if _instruction(call.attrs.kind, dtype_of(target)) is None:
            touched.add(target.source)
        kinds.setdefault(target.source, set()).add(call.attrs.kind)
        for expr in (*target.indices, *call.args[1:]):
            visitor.visit(expr)

    def on_call(call: ir.Call, visitor: Any) -> None:
        nonlocal ordered
        ordered = ordered or (_is_atomic(call) and call.args[0].source.scope() == "global")
        visitor.default_visit(call)

    def on_view(stmt: T.DeclBuffer, visitor: Any) -> None:
        nonlocal ordered
        ordered = ordered or stmt.buffer.scope() == "global"

    def on_var(var: ir.Var, visitor: Any) -> None:
        if is_buffer(var):
            touched.add(var)

    def on_attr(stmt: T.AttrStmt, visitor: Any) -> None:
        nonlocal ordered
        ordered = ordered or stmt.attr_key == "tl.may_alias"
        visitor.visit(stmt.body)

    structural_visit(
        func.body,
        [
            (T.Evaluate, on_evaluate),
            (ir.Call, on_call),
            (T.DeclBuffer, on_view),
            (T.AttrStmt, on_attr),
            (ir.Var, on_var),
        ],
    )
    alone = all(len(found) == 1 and tensor not in touched for tensor, found in kinds.items())
    return alone and not ordered


def worth_sharing(func: T.PrimFunc) -> bool:
    """Whether blocks do enough beside their updates of tensors to run at the same time.

    One atomic costs as much as many plain steps, even without another thread. Where they are most
    of the work, as in a histogram, one thread with plain updates is faster than several.
    """
    updates, others, times = 0, 0, 1

    def on_for(loop: T.For, visitor: Any) -> None:
        nonlocal times
        extent = const_int(loop.extent)
        before = times
        times *= _UNKNOWN_TRIPS if extent is None else extent
        if loop.kind == T.ForKind.THREAD_BINDING:
            times = before  # counted for one block
        visitor.default_visit(loop)
        times = before

    def on_leaf(stmt: Any, visitor: Any) -> None:
        nonlocal updates, others
        call = stmt.value
        if _is_atomic(call) and call.args[0].source.scope() == "global":
            updates += times
        else:
            others += times

    structural_visit(func.body, [(T.For, on_for), ((T.Evaluate, T.BufferStore, T.Bind), on_leaf)])
    return others >= _STEPS_AN_ATOMIC * updates


def _is_atomic(value: Any) -> bool:
    return isinstance(value, ir.Call) and value.op.same_as(ELEMENT_ATOMIC)


def update_store(call: ir.Call) -> T.BufferStore:
    """The update that ``call`` is, as a store: ``C[i] = update(v)``."""
    target, value = call.args
    dtype = dtype_of(target)
    marker = ir.Call(_UPDATE, [value], attrs=call.attrs, ret_ty=dtype, span=call.span)
    return T.BufferStore(target.source, marker, list(target.indices), call.span)


def lower_updates(func: T.PrimFunc) -> T.PrimFunc:
    """Turn updates into calls.

    Before: ``C[i] = update(v)``. After: ``tl_atomic_add_int32(address_of(C[i]), v)``.
    """

    def on_store(stmt: T.BufferStore) -> T.Stmt:
        call = stmt.value
        if not (isinstance(call, ir.Call) and call.op.same_as(_UPDATE)):
            return stmt
        dtype = dtype_of(stmt.buffer)
        element = T.BufferLoad(stmt.buffer, list(stmt.indices))
        address = ir.Call(
            ir.Op.get("tirx.address_of"),
            [element],
            ret_ty=ir.PointerType(ir.PrimType(dtype), "global"),
        )
        name = ir.StringImm(f"{_PREFIX}{call.attrs.kind}_{dtype}")
        extern = ir.Call(ir.Op.get("tirx.call_extern"), [name, address, call.args[0]], ret_ty=dtype)
        return T.Evaluate(extern, stmt.span)

    return func.with_body(structural_map(func.body, (T.BufferStore, on_store)))


def define_updates(func: T.PrimFunc) -> T.PrimFunc:
    """Add the LLVM text of the helper functions that ``func`` calls; they are always inlined."""
    names: dict[str, None] = {}

    def on_call(call: ir.Call) -> None:
        if isinstance(call.op, ir.Op) and call.op.name == "tirx.call_extern":
            name = str(call.args[0].value)
            if name.startswith(_PREFIX):
                names[name] = None

    structural_walk(func.body, (ir.Call, on_call))
    if not names:
        return func
    text = ir.StringImm("\n".join(map(_definition, names)))
    body = T.AttrStmt(T.const(0, "int32"), "pragma_import_llvm", text, func.body)
    return func.with_body(body)


def _definition(name: str) -> str:
    kind, dtype = name.removeprefix(_PREFIX).split("_", 1)
    scalar = _TYPES[dtype]
    return f"""define {scalar} @{name}(ptr %p, {scalar} %v) {{
  %old = atomicrmw {_instruction(kind, dtype)} ptr %p, {scalar} %v monotonic
  ret {scalar} %old
}}"""
