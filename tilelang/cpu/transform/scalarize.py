"""Vectors as their lanes: C source of this backend knows scalars only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import DataType, ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_mutate, structural_walk

from tilelang.errors import UnsupportedError
from tilelang.ir.expr import is_buffer

__all__ = ["scalarize_vectors"]

_BINARY = (
    prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod, prim.Max,
    prim.Min, prim.EQ, prim.NE, prim.LT, prim.LE, prim.GT, prim.GE, prim.And, prim.Or,
    prim.LShift, prim.RShift, prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor,
)  # fmt: skip


def scalarize_vectors(func: T.PrimFunc) -> T.PrimFunc:
    """Replace vector values by one scalar a lane, and vector buffers by scalar ones.

    Before: ``B[i] = A[i] * T.Broadcast(2.0, 2)`` on float32x2. After: ``v = A[i * 2] * 2.0; v_1 =
    A[i * 2 + 1] * 2.0; B[i * 2] = v; B[i * 2 + 1] = v_1``.

    Raises
    ------
    UnsupportedError
        For a call that takes or gives a vector and is not computed lane by lane.
    """
    rewriter = _Scalarizer()
    if not _has_vectors(func):
        return func
    params = [rewriter.declared(param) for param in func.params]
    body = rewriter.rewrite(func.body)
    return T.PrimFunc(params, body, func.ret_type, func.attrs, func.span)


def _lanes(ty: Any) -> int:
    return int(ty.dtype.lanes) if isinstance(ty, ir.PrimType) else 1


def _has_vectors(func: T.PrimFunc) -> bool:
    found: list[Any] = []

    def on_expr(expr: ir.Expr) -> None:
        if _lanes(expr.ty.dtype if is_buffer(expr) else expr.ty) > 1:
            found.append(expr)

    structural_walk(func.body, (ir.Expr, on_expr))
    return bool(found)


def _element(ty: ir.PrimType) -> str:
    """The dtype of one lane."""
    return str(ty.dtype.with_lanes(1))


def _scalar_pointer(ty: Any) -> Any:
    """The pointer to one lane of what ``ty`` points to; another type as it is."""
    element = ty.element_type if isinstance(ty, ir.PointerType) else None
    if not isinstance(element, ir.PrimType) or _lanes(element) <= 1:
        return ty
    return ir.PointerType(ir.PrimType(_element(element)), ty.storage_scope)


class _Scalarizer:
    """Lanes of variables and scalar twins of buffers."""

    def __init__(self) -> None:
        self.buffers: dict[ir.Var, ir.Var] = {}
        self.variables: dict[ir.Var, list[ir.Var]] = {}
        self.pointers: dict[ir.Var, ir.Var] = {}

    def rewrite(self, node: Any) -> Any:
        return structural_mutate(
            node,
            [
                (T.Bind, self._bind),
                (T.BufferStore, self._store),
                (T.Evaluate, self._evaluate),
                (ir.TensorLoad, self._load),
                (prim.Shuffle, self._shuffle),
                (ir.Call, self._call),
                (ir.Var, lambda var, _: self.declared(var)),
            ],
        )

    def declared(self, var: ir.Var) -> ir.Var:
        """What a buffer or pointer becomes."""
        if is_buffer(var):
            return self._buffer(var)
        scalar = _scalar_pointer(var.ty)
        if scalar is var.ty:
            return var
        return self.pointers.setdefault(var, T.Var(var.name, scalar, var.span))

    def _buffer(self, buffer: ir.Var) -> ir.Var:
        lanes = _lanes(buffer.ty.dtype)
        if lanes == 1:
            return buffer
        if buffer not in self.buffers:
            self.buffers[buffer] = T.decl_buffer(
                [buffer.shape[0] * lanes],
                _element(buffer.ty.dtype),
                buffer.name,
                scope=buffer.scope(),
                data_alignment=buffer.ty.data_alignment,
                layout=None,
                span=buffer.span,
            )
        return self.buffers[buffer]

    # --- statements -----------------------------------------------------------------------------

    def _bind(self, stmt: T.Bind, mutator: Any) -> Any:
        lanes = _lanes(stmt.var.ty)
        if lanes == 1:
            return mutator.default_mutate(stmt)
        element = ir.PrimType(_element(stmt.var.ty))
        parts = [T.Var(stmt.var.name, element, stmt.span) for _ in range(lanes)]
        values = [self.lane(stmt.value, k) for k in range(lanes)]
        self.variables[stmt.var] = parts
        return T.SeqStmt([T.Bind(p, v, stmt.span) for p, v in zip(parts, values, strict=True)])

    def _store(self, stmt: T.BufferStore, mutator: Any) -> Any:
        lanes = _lanes(stmt.value.ty)
        if lanes == 1:
            return mutator.default_mutate(stmt)
        # All lanes are read before the first is written.
        element = ir.PrimType(_element(stmt.value.ty))
        parts = [T.Var("v", element) for _ in range(lanes)]
        binds = [T.Bind(part, self.lane(stmt.value, k)) for k, part in enumerate(parts)]
        target = self._buffer(stmt.buffer)
        stores = [
            T.BufferStore(target, part, [self._place(stmt.indices[0], k, lanes)], stmt.span)
            for k, part in enumerate(parts)
        ]
        return T.SeqStmt([*binds, *stores])

    def _evaluate(self, stmt: T.Evaluate, mutator: Any) -> Any:
        return T.Evaluate(0) if _lanes(stmt.value.ty) > 1 else mutator.default_mutate(stmt)

    # --- scalar expressions with vectors inside -------------------------------------------------

    def _load(self, load: ir.TensorLoad, mutator: Any) -> Any:
        assert _lanes(load.ty) == 1, "lanes are taken one by one"
        index = mutator.mutate(load.indices[0])
        return T.BufferLoad(self._buffer(load.source), [index], load.span)

    def _shuffle(self, node: prim.Shuffle, mutator: Any) -> Any:
        return self.lane(node, 0)

    def _call(self, call: ir.Call, mutator: Any) -> Any:
        if isinstance(call.op, ir.Op) and call.op.name == "tirx.address_of":
            return self._address(call)
        if all(_lanes(arg.ty) == 1 for arg in call.args):
            changed = mutator.default_mutate(call)
            ty = _scalar_pointer(call.ty)
            return ir.Call(changed.op, changed.args, call.attrs, span=call.span, ret_ty=ty)
        return self.lane(call, 0)

    def _address(self, call: ir.Call) -> ir.Expr:
        load = call.args[0]
        index = self._place(load.indices[0], 0, _lanes(load.source.ty.dtype))
        first = T.BufferLoad(self._buffer(load.source), [index], load.span)
        return ir.Call(call.op, [first], span=call.span, ret_ty=call.ty)

    # --- lanes ----------------------------------------------------------------------------------

    def _place(self, index: ir.Expr, lane: int, lanes: int) -> ir.Expr:
        """Where lane ``lane`` of an access with ``index`` lies in the scalar buffer."""
        if isinstance(index, prim.Ramp):
            return self.rewrite(index.base) + self.rewrite(index.stride) * lane
        return self.rewrite(index) * lanes + lane

    def lane(self, expr: Any, k: int) -> ir.Expr:
        """Lane ``k`` of a vector; a scalar is the same in every lane."""
        lanes = _lanes(expr.ty)
        if lanes == 1 and not isinstance(expr, (prim.Shuffle, ir.Call)):
            return self.rewrite(expr)
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr, k)
        if isinstance(expr, _BINARY):
            return type(expr)(self.lane(expr.a, k), self.lane(expr.b, k), expr.span)
        raise UnsupportedError(
            f"{type(expr).__name__} of a vector does not run as C source on the CPU", expr.span
        )

    def lane_of_call(self, call: ir.Call, k: int) -> ir.Expr:
        """Lane ``k`` of a call that is computed lane by lane, or only moves lanes."""
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        lanes = _lanes(call.ty)
        if name == "tirx.vectorlow":
            return self.lane(call.args[0], k)
        if name == "tirx.vectorhigh":
            return self.lane(call.args[0], k + lanes)
        if name == "tirx.vectorcombine":
            half = _lanes(call.args[0].ty)
            return self.lane(call.args[k // half], k % half)
        if name == "tirx.reinterpret" and _lanes(call.args[0].ty) != lanes:
            return self._recut(call, k)
        if name in ("tirx.call_extern", "tirx.call_pure_extern") and lanes > 1:
            raise UnsupportedError(
                f"{call.args[0].value} with vectors does not run as C source on the CPU", call.span
            )
        ty = ir.PrimType(_element(call.ty))
        args = [arg if isinstance(arg, ir.StringImm) else self.lane(arg, k) for arg in call.args]
        return ir.Call(call.op, args, call.attrs, span=call.span, ret_ty=ty)

    def _recut(self, call: ir.Call, k: int) -> ir.Expr:
        """Bits of lanes of one width as lanes of another."""
        value = call.args[0]
        have, want = (DataType(_element(e.ty)).bits for e in (value, call))
        source, target = ir.PrimType(f"uint{have}"), ir.PrimType(f"uint{want}")

        def bits(lane: int) -> ir.Expr:
            return _reinterpret(self.lane(value, lane), source)

        if want < have:
            shift = T.const(k * want % have, f"uint{have}")
            cut: ir.Expr = prim.Cast(target, prim.RShift(bits(k * want // have), shift))
        else:
            ratio = want // have
            cut = prim.Cast(target, bits(k * ratio))
            for part in range(1, ratio):
                shift = T.const(part * have, f"uint{want}")
                high = prim.LShift(prim.Cast(target, bits(k * ratio + part)), shift)
                cut = prim.BitwiseOr(cut, high)
        return _reinterpret(cut, ir.PrimType(_element(call.ty)))


def _reinterpret(value: ir.Expr, ty: ir.PrimType) -> ir.Expr:
    return ir.Call(ir.Op.get("tirx.reinterpret"), [value], ret_ty=ty)


def _shuffled(s: _Scalarizer, node: prim.Shuffle, k: int) -> ir.Expr:
    wanted = int(node.indices[k])
    for vector in node.vectors:
        lanes = _lanes(vector.ty)
        if wanted < lanes:
            return s.lane(vector, wanted)
        wanted -= lanes
    raise AssertionError("a shuffle names a lane beyond its vectors")


def _loaded(s: _Scalarizer, load: ir.TensorLoad, k: int) -> ir.Expr:
    index = s._place(load.indices[0], k, _lanes(load.ty))
    return T.BufferLoad(s._buffer(load.source), [index], load.span)


_RULES: dict[type, Callable[[_Scalarizer, Any, int], ir.Expr]] = {
    ir.Var: lambda s, var, k: s.variables[var][k],
    ir.TensorLoad: _loaded,
    ir.Call: lambda s, call, k: s.lane_of_call(call, k),
    prim.Shuffle: _shuffled,
    prim.Broadcast: lambda s, node, k: s.rewrite(node.value),
    prim.Ramp: lambda s, node, k: s.rewrite(node.base) + s.rewrite(node.stride) * k,
    prim.Cast: lambda s, node, k: prim.Cast(
        ir.PrimType(_element(node.ty)), s.lane(node.value, k), node.span
    ),
    prim.Not: lambda s, node, k: prim.Not(s.lane(node.a, k), node.span),
    prim.BitwiseNot: lambda s, node, k: prim.BitwiseNot(s.lane(node.value, k), node.span),
    prim.Select: lambda s, node, k: prim.Select(
        s.lane(node.condition, k),
        s.lane(node.true_value, k),
        s.lane(node.false_value, k),
        node.span,
    ),
}
