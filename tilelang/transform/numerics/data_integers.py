"""Integer *data* wraps modulo 2^width; index arithmetic is declared not to overflow.

An expression is data if it contains a tensor element, a call that is no index, or a scalar
parameter that is only used as a value. It is an index if it is built from loop variables, block
and thread indices, constants, and symbols: scalar parameters that occur (also through bound
temporaries) in a shape, a loop bound or an index. Whatever stands *in* an index or a loop bound is
index arithmetic.

Data arithmetic becomes numeric operators, because TVM's simplifier and LLVM both take overflow for
impossible. Divisions and shifts by a value get guards; constants need none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_map, structural_mutate, structural_walk

from tilelang.transform.numerics import ops
from tilelang.transform.numerics.dtypes import (
    cast,
    element,
    is_float,
    is_int,
    is_plain_index,
    variables,
    width,
)
from tilelang.transform.numerics.functions import op_name

__all__ = ["wrap_data_integers"]

_WRAPPING = {prim.Add: "add", prim.Sub: "sub", prim.Mul: "mul"}
_DIVISIONS = {
    prim.Div: "truncdiv",
    prim.Mod: "truncmod",
    prim.FloorDiv: "floordiv",
    prim.FloorMod: "floormod",
}
_SHIFTS = {prim.LShift: "shl", prim.RShift: "shr"}


def wrap_data_integers(func: T.PrimFunc) -> T.PrimFunc:
    """Give integer data arithmetic its defined results. Runs before anything simplifies.

    Before: ``B[i] = (A[i] + 1) // B[i]``. After: ``B[i] = tl.num.floordiv(tl.num.add(A[i], 1),
    B[i])``; ``A[i * 4 + j]`` and ``B[i] = i * 4 + j`` stay.
    """
    body = _Wrapper(_index_symbols(func)).rewrite(_without_negative_tests(func.body))
    return func if body.same_as(func.body) else func.with_body(body)


def _without_negative_tests(body: T.Stmt) -> T.Stmt:
    """Decide ``x < 0`` of unsigned ``x``: TVM's simplifier would negate the 0, and gives up."""

    def decided(zero: str, result: bool) -> Callable[[Any], Any]:
        def rule(node: Any) -> Any:
            side = getattr(node, zero)
            unsigned = isinstance(side, prim.IntImm) and element(side).startswith("uint")
            return T.const(result, "bool") if unsigned and int(side.value) == 0 else node

        return rule

    rules = [
        (prim.LT, "b", False),
        (prim.GE, "b", True),
        (prim.GT, "a", False),
        (prim.LE, "a", True),
    ]
    return structural_map(body, [(kind, decided(zero, result)) for kind, zero, result in rules])


def _index_symbols(func: T.PrimFunc) -> set[ir.Var]:
    """Variables that are indices: loop variables, shape symbols, parameters used in an index."""
    found: set[ir.Var] = set()
    bound: dict[ir.Var, ir.Expr] = {}

    def collect(*exprs: Any) -> None:
        for expr in exprs:
            found.update(variables(expr))

    def on_buffer(var: ir.Var) -> None:
        if _is_buffer(var):
            collect(*var.ty.shape, *var.ty.strides, var.ty.elem_offset)

    def on_bind(bind: T.Bind) -> None:
        bound[bind.var] = bind.value

    for param in func.params:
        on_buffer(param)
    handlers = [
        (T.For, lambda loop: collect(loop.loop_var, loop.min, loop.extent)),
        (T.Bind, on_bind),
        (T.AttrStmt, lambda attr: collect(attr.value)),
        (T.AllocBuffer, lambda stmt: on_buffer(stmt.buffer)),
        (T.DeclBuffer, lambda stmt: on_buffer(stmt.buffer)),
        (T.BufferStore, lambda store: collect(*store.indices)),
        (ir.TensorLoad, lambda load: collect(*load.indices)),
    ]
    structural_walk(func.body, handlers)
    pending = [var for var in found if var in bound]
    while pending:
        value = bound.pop(pending.pop(), None)
        if value is not None:
            collect(value)
            pending += [var for var in variables(value) if var in bound]
    return found


def _same(new: Sequence[Any], old: Sequence[Any]) -> bool:
    return all(a.same_as(b) for a, b in zip(new, old, strict=True))


def _is_buffer(var: ir.Var) -> bool:
    return isinstance(var.ty, T.BufferType)


class _Wrapper:
    """One traversal; ``in_index`` and ``forced`` say where it stands."""

    def __init__(self, symbols: set[ir.Var]) -> None:
        self.symbols = symbols
        self.bound: dict[ir.Var, bool] = {}
        self.in_index = False
        self.forced = False  # inside data arithmetic, where index terms wrap with the rest

    def rewrite(self, body: T.Stmt) -> Any:
        handlers: list[tuple[type, Callable[..., Any]]] = [
            (T.BufferStore, self.on_store),
            (ir.TensorLoad, self.on_load),
            (T.For, self.on_for),
            (T.Bind, self.on_bind),
            (prim.Let, self.on_let),
            *((node, self.on_arithmetic) for node in _WRAPPING),
            *((node, self.on_division) for node in _DIVISIONS),
            *((node, self.on_shift) for node in _SHIFTS),
            (prim.Cast, self.on_cast),
            *((node, self.on_transparent) for node in (prim.Select, prim.Max, prim.Min)),
            *(
                (leaf, lambda node, _: node)
                for leaf in (ir.Type, ir.Var, prim.IntImm, prim.FloatImm)
            ),
            (ir.Expr, self.on_other),
        ]
        return structural_mutate(body, handlers)

    def _under(self, mutator: Any, value: Any, in_index: bool, forced: bool = False) -> Any:
        if in_index and is_plain_index(value):
            return value
        outer = self.in_index, self.forced
        self.in_index, self.forced = in_index, forced
        result = mutator.mutate(value)
        self.in_index, self.forced = outer
        return result

    def on_store(self, store: T.BufferStore, mutator: Any) -> Any:
        value = self._under(mutator, store.value, False)
        indices = [self._under(mutator, index, True) for index in store.indices]
        if value.same_as(store.value) and _same(indices, store.indices):
            return store
        return T.BufferStore(store.buffer, value, indices, store.span)

    def on_load(self, load: ir.TensorLoad, mutator: Any) -> Any:
        indices = [self._under(mutator, index, True) for index in load.indices]
        if _same(indices, load.indices):
            return load
        return T.BufferLoad(load.source, indices, load.span)

    def on_for(self, loop: T.For, mutator: Any) -> Any:
        low, extent = (self._under(mutator, e, True) for e in (loop.min, loop.extent))
        body = mutator.mutate(loop.body)
        if _same((low, extent, body), (loop.min, loop.extent, loop.body)):
            return loop
        return T.For(
            loop.loop_var, low, extent, loop.kind, body, loop.thread_binding, loop.annotations,
            loop.step, loop.span,
        )  # fmt: skip

    def on_bind(self, bind: T.Bind, mutator: Any) -> Any:
        self.bound[bind.var] = self.is_data(bind.value)
        value = self._under(mutator, bind.value, False)
        return bind if value.same_as(bind.value) else T.Bind(bind.var, value, bind.span)

    def on_let(self, let: prim.Let, mutator: Any) -> Any:
        self.bound[let.var] = self.is_data(let.value)
        value = self._under(mutator, let.value, self.in_index)
        return prim.Let(let.var, value, mutator.mutate(let.body), let.span)

    def _wraps(self, node: ir.Expr) -> bool:
        if self.in_index or not is_int(element(node)):
            return False
        return self.forced or self.is_data(node)

    def on_arithmetic(self, node: Any, mutator: Any) -> Any:
        if not self._wraps(node) or _cannot_overflow(node):
            return self._plain(node, mutator)
        return self._call(_WRAPPING[type(node)], node, mutator)

    def _call(self, name: str, node: Any, mutator: Any) -> ir.Expr:
        a, b = (
            self._under(mutator, side, self.in_index, not self.in_index)
            for side in (node.a, node.b)
        )
        return ops.call(name, element(node), a, b, span=node.span)

    def _plain(self, node: Any, mutator: Any) -> Any:
        outer, self.forced = self.forced, False
        result = mutator.default_mutate(node)
        self.forced = outer
        return result

    def on_division(self, node: Any, mutator: Any) -> Any:
        if not is_int(element(node)):
            return self._plain(node, mutator)
        safe = isinstance(node.b, prim.IntImm) and node.b.value != 0
        # A loop variable starts at 0 and an extent may be 0: dividing would stop the process.
        if self._wraps(node) or not safe:
            return self._call(_DIVISIONS[type(node)], node, mutator)
        return self._plain(node, mutator)

    def on_shift(self, node: Any, mutator: Any) -> Any:
        legal = isinstance(node.b, prim.IntImm) and 0 <= node.b.value < width(element(node))
        trusted = self.in_index and not self.is_data(node.b)
        if self._wraps(node) or not (legal or trusted):
            return self._call(_SHIFTS[type(node)], node, mutator)
        return self._plain(node, mutator)

    def on_cast(self, node: Any, mutator: Any) -> Any:
        source, target = element(node.value), element(node)
        value = self._under(mutator, node.value, self.in_index)
        if self.in_index or not (is_int(source) and is_int(target)) or not self.is_data(node.value):
            return node if value.same_as(node.value) else prim.Cast(node.ty, value, node.span)
        if _holds(target, source):
            return cast(value, target)
        return ops.call("cast_int", target, value, span=node.span)

    def on_transparent(self, node: Any, mutator: Any) -> Any:
        """Arms of data arithmetic are data arithmetic."""
        return mutator.default_mutate(node)

    def on_other(self, node: Any, mutator: Any) -> Any:
        return self._plain(node, mutator)

    def is_data(self, expr: Any) -> bool:
        """Whether ``expr`` contains data; see the module docstring."""
        if isinstance(expr, (prim.IntImm, ir.StringImm)):
            return False
        if isinstance(expr, ir.Var):
            known = self.bound.get(expr)
            return expr not in self.symbols if known is None else known
        if isinstance(expr, (ir.TensorLoad, prim.FloatImm)):
            return True
        if isinstance(expr, ir.Call):
            opaque = op_name(expr) in (
                "tirx.reinterpret",
                "tirx.call_extern",
                "tirx.call_pure_extern",
            )
            return opaque or any(self.is_data(arg) for arg in expr.args)
        if isinstance(expr, prim.Cast):
            return is_float(element(expr.value)) or self.is_data(expr.value)
        if isinstance(expr, prim.Select):
            return self.is_data(expr.true_value) or self.is_data(expr.false_value)
        if isinstance(expr, prim.Let):
            return self.is_data(expr.value) or self.is_data(expr.body)
        parts = [getattr(expr, name, None) for name in ("a", "b", "value", "base", "stride")]
        vectors = getattr(expr, "vectors", ())
        return any(self.is_data(part) for part in (*parts, *vectors) if isinstance(part, ir.Expr))


def _cannot_overflow(node: Any) -> bool:
    """Whether the operands are converted from types so short that the result fits."""
    if not all(
        isinstance(side, prim.Cast) and is_int(element(side.value)) for side in (node.a, node.b)
    ):
        return False
    name = element(node)
    sizes = [width(element(side.value)) for side in (node.a, node.b)]
    if name.startswith("u") or any(
        not _holds(name, element(side.value)) for side in (node.a, node.b)
    ):
        return False
    needed = sum(sizes) if isinstance(node, prim.Mul) else max(sizes) + 1
    # unsigned operands need a bit for the sign
    needed += any(element(side.value).startswith("u") for side in (node.a, node.b))
    return needed <= width(name)


def _holds(target: str, source: str) -> bool:
    """Whether every value of integer dtype ``source`` is one of ``target``."""
    if source.startswith("u"):
        return width(target) > width(source) or (
            target.startswith("u") and width(target) == width(source)
        )
    return not target.startswith("u") and width(target) >= width(source)
