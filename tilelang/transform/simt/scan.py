"""Scans: each thread folds a run of elements, then lanes and warps hand their totals on.

A line is one sequence along the scanned dimension. With enough lines every thread walks its own;
otherwise a group of threads shares a line. Member ``m`` of a group has the elements
``[m * run, (m + 1) * run)`` in registers, and adds what the members before it hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_equal

from tilelang.ir import intrin
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.op.reducer import identity
from tilelang.ir.region import region_extents
from tilelang.transform.folds import Combine, combine, working_dtype
from tilelang.transform.loops import load, store
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.context import SimtContext, register_array
from tilelang.transform.simt.row_major import digits_of

__all__ = ["lower_scan"]

_LONGEST_RUN = 64
_LANE_RUN = 8


@dataclass(frozen=True)
class _Group:
    """The threads that share a line: ``lanes`` of a warp, in each of ``warps`` warps.

    Without whole warps there is one lane, and "warps" are threads.
    """

    lanes: int
    warps: int
    run: int

    @property
    def size(self) -> int:
        return self.lanes * self.warps


def lower_scan(call: TileCall, ctx: SimtContext) -> T.Stmt:
    """Inclusive scan of memory along ``dim``, in the threads of a block.

    Before: ``T.cumsum(S)`` of 256 elements, 128 threads. After: ``run[0:3] = S[tx * 3:+3]`` folded
    in place, totals exchanged, ``S[tx * 3 + i] = before + run[i]``.
    """
    return _Scan(call, ctx).statement()


class _Scan:
    """The pieces of one scan."""

    def __init__(self, call: TileCall, ctx: SimtContext) -> None:
        self.call, self.ctx = call, ctx
        self.src, self.dst = call.operand("src"), call.operand("dst")
        self.dim = int(call.attrs.dim)
        self.dtype = working_dtype(dtype_of(self.src), dtype_of(self.dst))
        self.fold: Combine = combine(call.attrs.kind)
        self.start = identity(call.attrs.kind, self.dtype)
        extents = region_extents(self.src)
        self.extent = extents[self.dim]
        self.others = [(a, e) for a, e in enumerate(extents) if a != self.dim]
        self.lines: Any = T.const(1, "int32")
        for _, extent in self.others:
            self.lines = ctx.simplify(self.lines * _int32(extent))

    def statement(self) -> T.Stmt:
        group = self._group()
        return self._alone() if group is None else self._together(group)

    def _group(self) -> _Group | None:
        """How many threads share a line; None if each has lines of its own."""
        lines, size = const_int(self.lines), const_int(self.extent)
        threads, warp = self.ctx.threads, self.ctx.warp_size
        if lines is None or size is None or size == 1:
            return None
        whole = threads % warp == 0
        innermost = self.dim == len(self.others)
        share = max(1, threads // lines)
        if not whole:
            count = min(share, size)
            return None if count < 2 else _Group(1, count, _odd(_ceil(size, count)))
        if share < warp:
            # Neighbouring lanes read neighbouring elements of a row.
            least = min(warp, _power(size)) if innermost else 1
            lanes = max(least, min(_power_below(share), _power(size)))
            run = _odd(_ceil(size, lanes))
            return None if lanes == 1 or run > _LONGEST_RUN else _Group(lanes, 1, run)
        lanes = min(warp, _power(size))
        warps = min(share // warp, max(1, _ceil(size, warp * _LANE_RUN)))
        run = _odd(_ceil(size, lanes * warps))
        return None if run > _LONGEST_RUN else _Group(lanes, warps, run)

    # -- one thread a line ---------------------------------------------------------------------
    def _alone(self) -> T.Stmt:
        ctx, zero = self.ctx, T.const(0, "int32")
        total = register_array("total", 1, self.dtype)
        turn, k = T.Var("turn", "int32"), T.Var("k", dtype_of(self.extent))
        line = turn * ctx.threads + ctx.thread
        old = T.BufferLoad(total, [zero])
        step = T.SeqStmt(
            [
                T.BufferStore(total, self.fold(old, self._element(line, k)), [zero]),
                self._put(line, k, old),
            ]
        )
        walk = T.SeqStmt(
            [
                T.BufferStore(total, self.start, [zero]),
                T.For(k, 0, self.extent, T.ForKind.SERIAL, step, span=self.call.span),
            ]
        )
        count = ctx.simplify((self.lines + (ctx.threads - 1)) // ctx.threads)
        ctx.analyzer.bind(turn, ir.Range.from_min_extent(T.const(0, "int32"), count), True)
        body = self._if(T.LT(line, self.lines), walk)
        loop = T.For(turn, 0, count, T.ForKind.SERIAL, body, span=self.call.span)
        return T.SeqStmt([T.AllocBuffer(total), unit(loop, self.call.span)])

    # -- a group of threads a line -------------------------------------------------------------
    def _together(self, group: _Group) -> T.Stmt:
        ctx = self.ctx
        at_once = ctx.threads // group.size
        values = register_array("run", group.run, self.dtype)
        before = register_array("before", 1, self.dtype)
        rounds = _ceil(int(const_int(self.lines) or 1), at_once)
        turn: Any = T.Var("turn", "int32") if rounds > 1 else T.const(0, "int32")
        if rounds > 1:
            ctx.analyzer.bind(turn, ir.Range(0, rounds), True)
        line = ctx.simplify(turn * at_once + ctx.thread // group.size)
        member = ctx.simplify(ctx.thread % group.size)
        steps = [
            self._fold_runs(group, values, line, member),
            *self._hand_on(group, values, before, member),
        ]
        last = self._put_runs(group, values, before, line, member)
        apart = group.warps > 1 or not self._own_elements()
        body: T.Stmt
        if apart:
            body = T.SeqStmt([*(unit(s) for s in steps), unit(last)])
        else:
            body = T.SeqStmt([*steps, last])
        if rounds > 1:
            body = T.For(turn, 0, rounds, T.ForKind.SERIAL, body, span=self.call.span)
        if not apart:
            body = unit(body, self.call.span)
        return T.stmt_seq(T.AllocBuffer(values), T.AllocBuffer(before), body)

    def _own_elements(self) -> bool:
        """Whether no thread reads an element that another one writes."""
        apart = not self.src.source.same_as(self.dst.source)
        return apart or structural_equal(self.src, self.dst)

    def _fold_runs(self, group: _Group, values: ir.Var, line: Any, member: Any) -> T.Stmt:
        """``values[i]`` = fold of the first ``i + 1`` elements of the run."""

        def one(i: Any) -> T.Stmt:
            k = member * group.run + i
            element = self._element(line, k)
            guard = self._inside(group, line, k)
            if guard is not None:
                element = T.if_then_else(guard, element, self.start)
            return T.BufferStore(values, element, [i])

        i = T.Var("i", "int32")
        read = T.For(i, 0, group.run, T.ForKind.UNROLLED, one(i))
        if group.run == 1:
            return read
        j = T.Var("i", "int32")
        total = self.fold(T.BufferLoad(values, [j]), T.BufferLoad(values, [j + 1]))
        chain = T.BufferStore(values, total, [j + 1])
        return T.SeqStmt([read, T.For(j, 0, group.run - 1, T.ForKind.UNROLLED, chain)])

    def _hand_on(self, group: _Group, values: ir.Var, before: ir.Var, member: Any) -> list[T.Stmt]:
        """``before[0]`` = fold of the runs of all earlier members of the group."""
        zero = T.const(0, "int32")
        mine = T.BufferLoad(before, [zero])
        total = T.BufferLoad(values, [T.const(group.run - 1, "int32")])
        if group.lanes == 1:
            steps: list[T.Stmt] = [T.BufferStore(before, self.start, [zero])]
            whole = total
        else:
            steps = [self._across_lanes(group, total, before, member)]
            whole = self.fold(mine, total)
        if group.warps > 1:
            steps += self._across_warps(group, whole, before, member)
        return steps

    def _across_lanes(self, group: _Group, total: Any, before: ir.Var, member: Any) -> T.Stmt:
        """An inclusive scan of the totals by shuffles, then one step up."""
        zero = T.const(0, "int32")
        inclusive = register_array("upto", 1, self.dtype)
        lane = self.ctx.simplify(member % group.lanes)
        other = register_array("other", 1, self.dtype)
        steps: list[T.Stmt] = [T.AllocBuffer(inclusive), T.AllocBuffer(other)]
        steps.append(T.BufferStore(inclusive, total, [zero]))
        own, theirs = T.BufferLoad(inclusive, [zero]), T.BufferLoad(other, [zero])
        distance = 1
        while distance < group.lanes:
            steps.append(T.BufferStore(other, _shuffle_up(own, distance, group.lanes), [zero]))
            join = T.BufferStore(inclusive, self.fold(theirs, own), [zero])
            steps.append(T.IfThenElse(T.GE(lane, T.const(distance, "int32")), join, None))
            distance *= 2
        earlier = _shuffle_up(own, 1, group.lanes)
        steps.append(T.BufferStore(before, earlier, [zero]))
        first = T.BufferStore(before, self.start, [zero])
        steps.append(T.IfThenElse(T.EQ(lane, zero), first, None))
        return T.stmt_seq(*steps)

    def _across_warps(self, group: _Group, whole: Any, before: ir.Var, member: Any) -> list[T.Stmt]:
        """Totals of warps through shared memory; each thread folds those before its own."""
        ctx, zero = self.ctx, T.const(0, "int32")
        at_once = ctx.threads // group.size
        space = ctx.shared("totals", [at_once, group.warps], self.dtype)
        row = ctx.simplify(ctx.thread // group.size)
        warp = ctx.simplify(member // group.lanes)
        last = T.EQ(ctx.simplify(member % group.lanes), T.const(group.lanes - 1, "int32"))
        put: T.Stmt = T.BufferStore(space, whole, [row, warp])
        conditions = [last] if group.lanes > 1 else []
        if at_once * group.size < ctx.threads:
            conditions.append(T.LT(row, T.const(at_once, "int32")))
        for condition in conditions:
            put = T.IfThenElse(condition, put, None)
        earlier = register_array("earlier", 1, self.dtype)
        w = T.Var("w", "int32")
        sum_ = self.fold(T.BufferLoad(earlier, [zero]), T.BufferLoad(space, [row, w]))
        take: T.Stmt = T.IfThenElse(T.LT(w, warp), T.BufferStore(earlier, sum_, [zero]), None)
        take = T.For(w, 0, group.warps - 1, _kind(group.warps), take)
        if at_once * group.size < ctx.threads:
            take = T.IfThenElse(T.LT(row, T.const(at_once, "int32")), take, None)
        mine = T.BufferLoad(before, [zero])
        join = T.BufferStore(before, self.fold(T.BufferLoad(earlier, [zero]), mine), [zero])
        reset = T.BufferStore(earlier, self.start, [zero])
        return [put, T.SeqStmt([T.AllocBuffer(earlier), reset, take, join])]

    def _put_runs(
        self, group: _Group, values: ir.Var, before: ir.Var, line: Any, member: Any
    ) -> T.Stmt:
        i = T.Var("i", "int32")
        k = member * group.run + i
        earlier = T.BufferLoad(before, [T.const(0, "int32")])
        total = self.fold(earlier, T.BufferLoad(values, [i]))
        write = self._put(line, k, total)
        guard = self._inside(group, line, k)
        if guard is not None:
            write = T.IfThenElse(guard, write, None)
        return T.For(i, 0, group.run, T.ForKind.UNROLLED, write)

    def _inside(self, group: _Group, line: Any, k: Any) -> Any | None:
        """Whether element ``k`` of ``line`` exists; None if it always does."""
        ctx = self.ctx
        size, lines = int(const_int(self.extent) or 0), int(const_int(self.lines) or 0)
        at_once = ctx.threads // group.size
        conditions = []
        if group.size * group.run > size:
            conditions.append(T.LT(k, T.const(size, "int32")))
        if lines % at_once or at_once * group.size < ctx.threads:
            # Threads beyond the last whole group have a line of the next round: none of theirs.
            conditions.append(T.LT(line, T.const(lines, "int32")))
        if at_once * group.size < ctx.threads:
            inside = T.LT(ctx.thread, T.const(at_once * group.size, "int32"))
            conditions.append(inside)
        result: Any = None
        for condition in conditions:
            result = condition if result is None else T.And(result, condition)
        return result

    # -- elements ------------------------------------------------------------------------------
    def _at(self, line: Any, k: Any) -> list[Any]:
        """The indices of element ``k`` of ``line``; the last other dimension moves first."""
        extent = _int32(self.extent)
        index = extent - 1 - k if self.call.attrs.reverse else k
        at: list[Any] = [None] * (len(self.others) + 1)
        at[self.dim] = self.ctx.simplify(index)
        places = digits_of(line, [extent for _, extent in self.others], self.ctx)
        for (axis, _), place in zip(self.others, places, strict=True):
            at[axis] = place
        return at

    def _element(self, line: Any, k: Any) -> ir.Expr:
        return load(self.src, self._at(line, k), self.dtype)

    def _put(self, line: Any, k: Any, value: ir.Expr) -> T.Stmt:
        return store(self.dst, self._at(line, k), value, self.call.span)

    def _if(self, condition: Any, body: T.Stmt) -> T.Stmt:
        if self.ctx.analyzer.can_prove(condition):
            return body
        return T.IfThenElse(condition, body, None, self.call.span)


def _shuffle_up(value: ir.Expr, distance: int, width: int) -> ir.Expr:
    arguments = [
        value,
        T.const(distance, "int32"),
        T.const(width, "int32"),
        T.const(intrin.FULL_MASK, "uint32"),
    ]
    return ir.Call(intrin.get("shfl_up").op, arguments, ret_ty=value.ty)


def _int32(extent: Any) -> Any:
    value = const_int(extent)
    return extent if value is None else T.const(value, "int32")


def _kind(count: int) -> Any:
    return T.ForKind.UNROLLED if count <= 32 else T.ForKind.SERIAL


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _odd(run: int) -> int:
    """An odd length, so that the runs of a warp begin in different banks."""
    return run if run == 1 else run | 1


def _power(n: int) -> int:
    """The smallest power of two that is not below ``n``."""
    return 1 << max(0, math.ceil(math.log2(n)))


def _power_below(n: int) -> int:
    return 1 << (n.bit_length() - 1)
