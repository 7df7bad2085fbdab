"""Wide accesses: the innermost vector of a nest goes through registers in one piece.

The elements of a group are loaded at once into a small array, computed one by one in an unrolled
loop, and stored at once. A plain copy needs no array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_mutate, structural_walk

from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.intrin import simt
from tilelang.transform.simt.access_map import mentions
from tilelang.transform.simt.defaults import at_zero, dtype_bits
from tilelang.transform.simt.nest import Access, accesses_of

__all__ = ["Place", "vectorize"]


@dataclass(frozen=True)
class Place:
    """What vectorisation may know: where a group of elements lies together in memory.

    ``memory(access)`` says whether the group of an access to global or shared memory is contiguous
    and aligned, ``registers(access)`` the same for one to registers; ``same(condition)`` whether a
    condition is the same for the whole group.
    """

    memory: Callable[[Access], bool]
    registers: Callable[[Access], bool]
    same: Callable[[ir.Expr], bool]


@dataclass
class _Stage:
    var: ir.Var
    width: int
    place: Place
    before: list[T.Stmt] = field(default_factory=list)
    after: list[T.Stmt] = field(default_factory=list)
    arrays: dict[str, ir.Var] = field(default_factory=dict)
    conditions: list[ir.Expr] = field(default_factory=list)
    varying: int = 0
    bound: list[ir.Var] = field(default_factory=list)
    stored: list[ir.Var] = field(default_factory=list)
    single: bool = False


def vectorize(
    body: T.Stmt, var: ir.Var, width: int, place: Place, asynchronous: bool = False
) -> T.Stmt:
    """Run ``body`` for ``var`` in ``range(width)``, with one access for all where possible.

    Before: ``for v in range(8): C[b + v] = A[b + v] + 1``. After: ``a[0:8] = A[b:b + 8]`` as one
    access, the loop over ``a`` and ``c``, ``C[b:b + 8] = c[0:8]``.
    """
    copied = _direct_copy(body, var, width, place, asynchronous)
    if copied is not None:
        return copied
    if width == 1:
        return at_zero(body, var)
    if isinstance(body, T.IfThenElse) and body.else_case is None and place.same(body.condition):
        inner = vectorize(body.then_case, var, width, place, asynchronous)
        return T.IfThenElse(at_zero(body.condition, var), inner, None, body.span)
    stage = _Stage(var, width, place)
    stage.bound = _bound_in(body)
    stage.stored = [a.buffer for a in accesses_of(body) if a.is_write]
    stage.single = isinstance(_inside_guards(body), T.BufferStore)
    inner = _rewrite(stage, body)
    loop = T.For(var, 0, width, T.ForKind.UNROLLED, inner)
    return T.stmt_seq(*stage.before, loop, *stage.after)


def _inside_guards(body: Any) -> Any:
    while isinstance(body, T.IfThenElse) and body.else_case is None:
        body = body.then_case
    return body


def _bound_in(body: Any) -> list[ir.Var]:
    found: list[ir.Var] = []
    structural_walk(
        body,
        [
            (T.Bind, lambda b: found.append(b.var)),
            (T.For, lambda loop: found.append(loop.loop_var)),
        ],
    )
    return found


def _address(buffer: ir.Var, indices: Any, var: ir.Var) -> ir.Expr:
    return T.address_of(T.BufferLoad(buffer, [at_zero(i, var) for i in indices]))


def _direct_copy(
    body: Any, var: ir.Var, width: int, place: Place, asynchronous: bool
) -> T.Stmt | None:
    """``dst[...] = src[...]`` of one dtype as one wide access, also under guards of the group."""
    conditions: list[ir.Expr] = []
    while isinstance(body, T.IfThenElse) and body.else_case is None:
        if not place.same(body.condition):
            return None
        conditions.append(at_zero(body.condition, var))
        body = body.then_case
    if not isinstance(body, T.BufferStore):
        return None
    value, guard, safe = body.value, None, None
    if isinstance(value, ir.Call) and getattr(value.op, "name", "") == "prim.if_then_else":
        guard, value, safe = value.args
        if not place.same(guard):
            return None
        guard = at_zero(guard, var)
    if not isinstance(value, ir.TensorLoad) or dtype_of(value) != dtype_of(body.buffer):
        return None
    read = Access(value.source, tuple(value.indices), False, value.span)
    write = Access(body.buffer, tuple(body.indices), True, body.span)
    bits = width * dtype_bits(dtype_of(body.buffer))
    if bits % 8 or bits > 128:
        return None
    if not (_together(read, place) and _together(write, place)):
        return None
    size = bits // 8
    target = _address(write.buffer, write.indices, var)
    source = _address(read.buffer, read.indices, var)
    zero = (safe is not None and const_int(safe) == 0) or _is_zero(safe)
    is_async = (
        asynchronous
        and read.scope == "global"
        and write.scope.startswith("shared")
        and size in (4, 8, 16)
        and (guard is None or zero)
    )
    if is_async:
        predicate = T.const(True, "bool") if guard is None else guard
        result = simt.call("cp_async", target, source, size, predicate, span=body.span)
    elif width == 1:
        return None
    else:
        result = simt.call("vec_copy", target, source, size, span=body.span)
        if guard is not None:
            if not zero:
                return None
            fill = simt.call("vec_zero", target, size, span=body.span)
            result = T.IfThenElse(guard, result, fill, body.span)
    for condition in reversed(conditions):
        result = T.IfThenElse(condition, result, None, body.span)
    return result


def _is_zero(value: Any) -> bool:
    return isinstance(value, T.FloatImm) and float(value.value) == 0.0


def _together(access: Access, place: Place) -> bool:
    memory = access.scope == "global" or access.scope.startswith("shared")
    return place.memory(access) if memory else place.registers(access)


def _rewrite(stage: _Stage, root: Any) -> Any:
    return structural_mutate(
        root,
        [
            (T.IfThenElse, lambda s, m: _on_if(stage, s, m)),
            (ir.Call, lambda c, m: _on_call(stage, c, m)),
            (ir.TensorLoad, lambda e, m: _on_load(stage, e, m)),
            (T.BufferStore, lambda s, m: _on_store(stage, s, m)),
            (T.For, lambda s, m: _on_loop(stage, s, m)),
            (T.While, lambda s, m: _on_loop(stage, s, m)),
        ],
    )


def _on_loop(stage: _Stage, loop: Any, mutator: Any) -> Any:
    """What an inner loop runs is left alone: it may run any number of times."""
    stage.varying += 1
    result = mutator.default_mutate(loop)
    stage.varying -= 1
    return result


def _guarded(stage: _Stage, condition: ir.Expr, run: Callable[[], Any]) -> Any:
    uniform = stage.place.same(condition) and not mentions(condition, stage.bound)
    if not uniform:
        stage.varying += 1
    else:
        stage.conditions.append(condition)
    result = run()
    if not uniform:
        stage.varying -= 1
    else:
        stage.conditions.pop()
    return result


def _on_if(stage: _Stage, stmt: T.IfThenElse, mutator: Any) -> Any:
    then_case = _guarded(stage, stmt.condition, lambda: mutator.mutate(stmt.then_case))
    else_case = stmt.else_case
    if else_case is not None:
        else_case = _guarded(stage, T.Not(stmt.condition), lambda: mutator.mutate(stmt.else_case))
    return T.IfThenElse(mutator.mutate(stmt.condition), then_case, else_case, stmt.span)


def _on_call(stage: _Stage, call: ir.Call, mutator: Any) -> Any:
    name = call.op.name if isinstance(call.op, ir.Op) else ""
    if name == "prim.if_then_else":
        condition = mutator.mutate(call.args[0])
        first = _guarded(stage, call.args[0], lambda: mutator.mutate(call.args[1]))
        second = _guarded(stage, T.Not(call.args[0]), lambda: mutator.mutate(call.args[2]))
        return T.if_then_else(condition, first, second, span=call.span)
    if name in ("tirx.address_of", "tl.atomic", "tl.access_ptr"):
        return call
    return mutator.default_mutate(call)


def _stageable(stage: _Stage, access: Access) -> bool:
    memory = access.scope == "global" or access.scope.startswith("shared")
    if not memory or stage.varying or mentions(list(access.indices), stage.bound):
        return False
    if _reads_memory(access.indices):
        return False
    return mentions(list(access.indices), [stage.var]) and stage.place.memory(access)


def _reads_memory(indices: Any) -> bool:
    return any(accesses_of(index) for index in indices)


def _array(stage: _Stage, access: Access, prefix: str) -> ir.Var:
    dtype = dtype_of(access.buffer)
    size = stage.width * dtype_bits(dtype) // 8
    return T.decl_buffer(
        [stage.width], dtype, f"{prefix}{access.buffer.name}", scope="local", layout=None,
        data_alignment=min(16, size),
    )  # fmt: skip


def _wide(stage: _Stage, target: ir.Expr, source: ir.Expr, dtype: str) -> T.Stmt:
    """One or more accesses of at most 16 bytes."""
    size = stage.width * dtype_bits(dtype) // 8
    return simt.call("vec_copy", target, source, size)


def _under(stage: _Stage, stmt: T.Stmt) -> T.Stmt:
    for condition in reversed(stage.conditions):
        stmt = T.IfThenElse(at_zero(condition, stage.var), stmt, None)
    return stmt


def _on_load(stage: _Stage, load: ir.TensorLoad, mutator: Any) -> Any:
    access = Access(load.source, tuple(load.indices), False, load.span)
    is_stored = any(load.source.same_as(b) for b in stage.stored)
    bits = stage.width * dtype_bits(dtype_of(load.source))
    if not _stageable(stage, access) or (is_stored and not stage.single) or bits % 8 or bits > 128:
        return mutator.default_mutate(load)
    key = f"{load.source.name} {load} {[str(c) for c in stage.conditions]}"
    if key not in stage.arrays:
        array = stage.arrays[key] = _array(stage, access, "v_")
        target = T.address_of(T.BufferLoad(array, [0]))
        source = _address(load.source, load.indices, stage.var)
        wide = _wide(stage, target, source, dtype_of(array))
        stage.before += [T.AllocBuffer(array), _under(stage, wide)]
    return T.BufferLoad(stage.arrays[key], [stage.var])


def _on_store(stage: _Stage, store: T.BufferStore, mutator: Any) -> Any:
    access = Access(store.buffer, tuple(store.indices), True, store.span)
    value = mutator.mutate(store.value)
    bits = stage.width * dtype_bits(dtype_of(store.buffer))
    if not _stageable(stage, access) or bits % 8 or bits > 128:
        indices = [mutator.mutate(index) for index in store.indices]
        return T.BufferStore(store.buffer, value, indices, store.span)
    array = _array(stage, access, "w_")
    stage.before.append(T.AllocBuffer(array))
    target = _address(store.buffer, store.indices, stage.var)
    wide = _wide(stage, target, T.address_of(T.BufferLoad(array, [0])), dtype_of(array))
    stage.after.append(_under(stage, wide))
    return T.BufferStore(array, value, [stage.var], store.span)
