"""A statement or expression as one thread runs it: indices, temporaries, per-thread storage."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_mutate, structural_walk
from tvm_ffi.dataclasses import replace

from tilelang.cpu.transform.threads.block import Block, for_threads, thread_indices
from tilelang.cpu.transform.threads.classify import INDEX_CALLS, is_update
from tilelang.cpu.transform.threads.collectives import WARP_SIZE
from tilelang.errors import UnsupportedError
from tilelang.ir.expr import dtype_of, is_buffer
from tilelang.ir.op import TileCall
from tilelang.transform.thread_use import lane_intrinsic

__all__ = ["as_address", "at_thread", "thread_loop"]


def thread_loop(block: Block, stmt: Any) -> T.Stmt:
    """``stmt`` for every thread that executes, one after another."""
    return for_threads(block, lambda t: at_thread(block, stmt, t), masked=True)


def at_thread(block: Block, node: Any, t: ir.Expr) -> Any:
    """``node`` (a statement or expression) as thread ``t`` runs it."""
    rewritten = _Rewriter(block, t).run(node)
    return _with_views(block, rewritten, t) if isinstance(node, T.Stmt) else rewritten


def as_address(pointer: ir.Expr) -> ir.Expr:
    """A pointer as uint64."""
    return _reinterpret(pointer, ir.PrimType("uint64"))


def _reinterpret(value: ir.Expr, ty: Any) -> ir.Expr:
    return ir.Call(ir.Op.get("tirx.reinterpret"), [value], ret_ty=ty)


def _with_views(block: Block, stmt: Any, t: ir.Expr) -> Any:
    """Declare the views at addresses of thread ``t`` that ``stmt`` uses, under names of its own."""
    if not block.addresses:
        return stmt
    used: dict[ir.Var, ir.Var] = {}

    def on_var(var: ir.Var) -> None:
        if var in block.addresses and var not in used:
            used[var] = T.decl_buffer(
                list(var.shape),
                dtype_of(var),
                var.name,
                strides=list(var.ty.strides) or None,
                scope=var.scope(),
                data_alignment=var.ty.data_alignment,
                layout=None,
                span=var.span,
            )

    structural_walk(stmt, (ir.Var, on_var))
    if not used:
        return stmt
    renamed = structural_mutate(stmt, (ir.Var, lambda var, _: used.get(var, var)))
    declarations = [
        T.DeclBuffer(
            fresh,
            data=_reinterpret(
                block.addresses[var][t],
                ir.PointerType(ir.PrimType(dtype_of(var)), var.scope()),
            ),
        )
        for var, fresh in used.items()
    ]
    return T.SeqStmt([*declarations, renamed])


class _Rewriter:
    """Rewrites storage and indices for thread ``t``."""

    def __init__(self, block: Block, t: ir.Expr) -> None:
        self.block, self.t = block, t
        self.indices = thread_indices(block, t)

    def run(self, node: Any) -> Any:
        return structural_mutate(
            node,
            [
                (T.Bind, self._bind),
                ((T.AllocBuffer, T.DeclBuffer), self._declaration),
                (T.BufferStore, self._store),
                (ir.TensorLoad, self._load),
                (ir.TensorRegion, self._region),
                (ir.Call, self._call),
                (ir.Var, self._var),
            ],
        )

    def _var(self, var: ir.Var, mutator: Any) -> Any:
        if var in self.indices:
            return self.indices[var]
        if var not in self.block.binds:
            return var
        value = self.block.binds[var][self.t]
        return _reinterpret(value, var.ty) if isinstance(var.ty, ir.PointerType) else value

    def _bind(self, stmt: T.Bind, mutator: Any) -> Any:
        target = self.block.binds.get(stmt.var)
        value = mutator.mutate(stmt.value)
        if target is None:
            return T.Bind(stmt.var, value, stmt.span)
        if is_update(value):  # an atomic is lowered where its result is bound
            once = T.Var(stmt.var.name, value.ty)
            store = T.BufferStore(target, once, [self.t], stmt.span)
            return T.SeqStmt([T.Bind(once, value, stmt.span), store])
        if isinstance(stmt.var.ty, ir.PointerType):
            value = as_address(value)
        return T.BufferStore(target, value, [self.t], stmt.span)

    def _declaration(self, stmt: Any, mutator: Any) -> Any:
        """Per-thread storage is declared outside of the loop over threads."""
        if stmt.buffer in self.block.expanded:
            return T.Evaluate(0)
        addresses = self.block.addresses.get(stmt.buffer)
        if addresses is None:
            return mutator.default_mutate(stmt)
        address = as_address(mutator.mutate(stmt.data))
        return T.BufferStore(addresses, address, [self.t], stmt.span)

    def _store(self, stmt: T.BufferStore, mutator: Any) -> Any:
        indices = [mutator.mutate(index) for index in stmt.indices]
        value = mutator.mutate(stmt.value)
        target = self.block.expanded.get(stmt.buffer)
        if target is None:
            return T.BufferStore(stmt.buffer, value, indices, stmt.span)
        return T.BufferStore(target, value, [self.t, *indices], stmt.span)

    def _load(self, load: ir.TensorLoad, mutator: Any) -> Any:
        indices = [mutator.mutate(index) for index in load.indices]
        source = self.block.expanded.get(load.source)
        if source is None:
            return T.BufferLoad(load.source, indices, load.span)
        return T.BufferLoad(source, [self.t, *indices], load.span)

    def _region(self, region: ir.TensorRegion, mutator: Any) -> Any:
        ranges = [
            ir.Range.from_min_extent(mutator.mutate(r.min), mutator.mutate(r.extent))
            for r in region.region
        ]
        source = self.block.expanded.get(region.source)
        if source is None:
            return T.BufferRegion(region.source, ranges)
        mine = ir.Range.from_min_extent(self.t, T.const(1, "int32"))
        return T.BufferRegion(source, [mine, *ranges])

    def _call(self, call: ir.Call, mutator: Any) -> Any:
        tile = TileCall.of(call)
        if tile is not None:
            return self._tile_op(tile, call, mutator)
        name = lane_intrinsic(call)
        if name in INDEX_CALLS:
            return self._index_call(name, [mutator.mutate(arg) for arg in call.args])
        shown = call.args[1] if len(call.args) > 1 else None
        if isinstance(shown, ir.TensorRegion) and shown.source in self.block.expanded:
            args = [mutator.mutate(arg) for arg in call.args]
            return ir.Call(call.op, args, attrs={"lead": 1}, ret_ty="void", span=call.span)
        for arg in call.args:
            if is_buffer(arg) and arg in self.block.expanded:
                return self._own_address(arg, call)
        return mutator.default_mutate(call)

    def _own_address(self, buffer: ir.Var, call: ir.Call) -> ir.Expr:
        """The address of the thread's own part of a buffer."""
        if call.op.name != "tirx.buffer_data":
            raise UnsupportedError(
                f"the per-thread buffer {buffer.name} as an operand of {call.op.name} does not "
                "run on the CPU in a thread program; pass the address of an element",
                call.span,
            )
        zeros = [T.const(0, "int32") for _ in buffer.shape]
        first = T.BufferLoad(self.block.expanded[buffer], [self.t, *zeros])
        return ir.Call(ir.Op.get("tirx.address_of"), [first], ret_ty=call.ty, span=call.span)

    def _tile_op(self, tile: TileCall, call: ir.Call, mutator: Any) -> Any:
        """A tile op on per-thread storage works behind the new leading dimension."""
        source = tile.get("src")
        moved = (
            source is not None
            and source.source in self.block.expanded
            and hasattr(call.attrs, "dim")
        )
        attrs = replace(call.attrs, dim=call.attrs.dim + 1) if moved else call.attrs
        args = [mutator.mutate(arg) for arg in call.args]
        return ir.Call(call.op, args, attrs=attrs, ret_ty="void", span=call.span)

    def _index_call(self, name: str, args: list[Any]) -> ir.Expr:
        t = self.t
        size = args[0] if args else T.const(WARP_SIZE, "int32")
        if name == "get_lane_idx":
            return T.floormod(t, size)
        warp = T.floordiv(t, size)
        if name == "get_warp_group_idx":
            return T.floordiv(warp, args[1] if len(args) > 1 else T.const(4, "int32"))
        return warp
