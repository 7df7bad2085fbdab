"""Replace the numeric operators by their formulas: the last pass before code generation.

Shared parts of a formula become temporaries, computed in statements before the one that uses them.
For LLVM a temporary is a local buffer of one value: TVM runs its analyzer over every ``Bind`` and
``Let`` while it emits LLVM IR and inlines the earlier ones, which takes time exponential in the
depth of sharing. The analyzer does not look into buffers, and LLVM turns them into registers. The
kernel's own temporaries of floats are stored in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_mutate

from tilelang.cpu.intrinsics.math import ops
from tilelang.transform.numerics.temporaries import holds_computed_data

__all__ = ["expand_numerics"]


def expand_numerics(func: T.PrimFunc, kind: str = "llvm") -> T.PrimFunc:
    """Replace every ``tl.num.*`` call by plain arithmetic that target ``kind`` executes exactly.

    Runs after ``LowerIntrin``, and nothing that simplifies may run after it. What remains are
    arithmetic nodes, ``Select``, ``Cast``, ``Shuffle``, ``tirx.reinterpret`` and calls of LLVM
    intrinsics (``llvm``) or of the C library (``c``, and float64 functions).

    Before: ``B[i] = tl.num.isnan(A[i])``. After: ``t[0] = A[i]; B[i] = t[0] != t[0]`` (for ``c``,
    ``t = A[i]``).
    """
    body = _Expander(kind).rewrite(func.body)
    return func if body.same_as(func.body) else func.with_body(body)


class _Expander:
    """State of one traversal: the statements that must run before the one being rewritten."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.before: list[T.Stmt] = []
        self.stored: dict[ir.Var, ir.Expr] = {}

    def rewrite(self, body: T.Stmt) -> Any:
        handlers: list[tuple[type, Callable[..., Any]]] = [
            (T.SeqStmt, self.on_sequence),
            (T.While, self.on_while),
            (T.Bind, self.on_bind),
            (T.Stmt, self.on_statement),
            (ir.Call, self.on_call),
            (ir.Var, lambda var, _: self.stored.get(var, var)),
        ]
        return structural_mutate(body, handlers)

    def temporary(self, value: ir.Expr) -> ir.Expr:
        """Compute ``value`` before the current statement; returns what reads it."""
        if self.kind != "llvm":
            var = T.Var("t", value.ty)
            self.before.append(T.Bind(var, value))
            return var
        allocation, store, load = _local_value("t", value)
        self.before += [allocation, store]
        return load

    def on_sequence(self, sequence: T.SeqStmt, mutator: Any) -> Any:
        result: list[T.Stmt] = []
        for stmt in sequence.seq:
            changed = mutator.mutate(stmt)
            # What a statement declares must be visible to its siblings.
            result += changed.seq if isinstance(changed, T.SeqStmt) else [changed]
        old = list(sequence.seq)
        if len(old) == len(result) and all(a.same_as(b) for a, b in zip(result, old, strict=True)):
            return sequence
        return T.stmt_seq(*result)

    def on_statement(self, stmt: T.Stmt, mutator: Any) -> Any:
        before, changed = self._collect(lambda: mutator.default_mutate(stmt))
        return T.stmt_seq(*before, changed) if before else changed

    def on_bind(self, bind: T.Bind, mutator: Any) -> Any:
        before, value = self._collect(lambda: mutator.mutate(bind.value))
        if self.kind == "llvm" and (before or holds_computed_data(bind)):
            allocation, store, load = _local_value(str(bind.var.name), value, bind.span)
            self.stored[bind.var] = load
            return T.stmt_seq(*before, allocation, store)
        if value.same_as(bind.value):
            return bind
        return T.stmt_seq(*before, T.Bind(bind.var, value, bind.span))

    def on_while(self, loop: T.While, mutator: Any) -> Any:
        before, condition = self._collect(lambda: mutator.mutate(loop.condition))
        body = mutator.mutate(loop.body)
        if not before:
            unchanged = condition.same_as(loop.condition) and body.same_as(loop.body)
            return loop if unchanged else T.While(condition, body, loop.span)
        leave = T.IfThenElse(prim.Not(condition), T.Break(), None, loop.span)
        return T.While(T.const(True, "bool"), T.stmt_seq(*before, leave, body), loop.span)

    def on_call(self, call: ir.Call, mutator: Any) -> Any:
        if isinstance(call.op, ir.Op) and call.op.name == "prim.if_then_else":
            return self._lazy(call, mutator)
        changed = mutator.default_mutate(call)
        if not ops.is_numeric(changed):
            return changed
        return ops.expand(changed, self.kind, self.temporary)

    def _collect(self, action: Callable[[], Any]) -> tuple[list[T.Stmt], Any]:
        """Run ``action``; returns the statements it wants before its result, and the result."""
        outer, self.before = self.before, []
        result = action()
        before, self.before = self.before, outer
        return before, result

    def _lazy(self, call: ir.Call, mutator: Any) -> ir.Expr:
        """Temporaries of an arm are computed only where that arm is chosen."""
        condition = mutator.mutate(call.args[0])
        arms = [self._collect(partial(mutator.mutate, arm)) for arm in call.args[1:]]
        if not any(before for before, _ in arms):
            values = [value for _, value in arms]
            return ir.Call(call.op, [condition, *values], span=call.span, ret_ty=call.ty)
        allocation, _, load = _local_value("t", arms[0][1])
        stores = [
            T.stmt_seq(*before, T.BufferStore(allocation.buffer, value, list(load.indices)))
            for before, value in arms
        ]
        self.before += [allocation, T.IfThenElse(condition, *stores)]
        return load


def _local_value(
    name: str, value: ir.Expr, span: ir.Span | None = None
) -> tuple[T.AllocBuffer, T.BufferStore, ir.TensorLoad]:
    """A local buffer for one value (of any number of lanes): its allocation, store and load."""
    kind = value.ty.dtype
    lanes = int(kind.lanes)
    element = str(kind) if lanes == 1 else str(kind.with_lanes(1))
    buffer = T.decl_buffer((lanes,), element, name, scope="local", layout=None)
    zero = T.IntImm("int32", 0)
    index = zero if lanes == 1 else prim.Ramp(zero, T.IntImm("int32", 1), T.IntImm("int32", lanes))
    store = T.BufferStore(buffer, value, [index], span)
    return T.AllocBuffer(buffer, span=span), store, T.BufferLoad(buffer, [index], span)
