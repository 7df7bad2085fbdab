"""``T.gemm`` on the tensor cores: ``ldmatrix`` for operands in shared memory, ``mma.sync``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.cuda.op.gemm_plan import GemmPlan, plan_gemm
from tilelang.ir import intrin
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.intrin import simt
from tilelang.ir.op import TileCall
from tilelang.ir.region import region_extents, region_mins
from tilelang.layout.distribution import Distribution
from tilelang.transform.loops import load as load_element
from tilelang.transform.loops import nest, store
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.context import SimtContext, register_array
from tilelang.transform.simt.defaults import divides, dtype_bits, keeps_vectors

__all__ = ["lower_gemm", "matrix_operands", "scalar_gemm"]

_UNROLLED = T.ForKind.UNROLLED


def lower_gemm(call: TileCall, ctx: SimtContext, arch: int) -> T.Stmt:
    """Multiply by matrix instructions; every GEMM that gets here has a plan."""
    plan, reason = plan_gemm(call, ctx.threads, arch)
    assert plan is not None, f"a GEMM without plan was left: {reason}"
    body = _Gemm(call, plan, ctx).statement()
    if plan.threads < ctx.threads:
        body = T.IfThenElse(T.LT(ctx.thread, T.const(plan.threads, "int32")), body, None, call.span)
    return unit(body, call.span)


def scalar_gemm(call: TileCall) -> T.Stmt:
    """The product as a parallel nest over C, for cases that no instruction covers."""
    attrs = call.attrs
    a, b, c = call.operand("A"), call.operand("B"), call.operand("C")
    m, n = region_extents(c)[-2:]
    k = region_extents(a)[-2 if attrs.transpose_A else -1]
    dtype = dtype_of(c)
    total = T.decl_buffer([1], dtype, "total", scope="local", layout=None)
    zero = T.const(0, "int32")

    def at(region: ir.TensorRegion, row: Any, column: Any) -> ir.Expr:
        lead = [zero] * (len(region_extents(region)) - 2)
        return load_element(region, [*lead, row, column], dtype)

    def body(index: list[ir.Expr]) -> T.Stmt:
        i, j = index
        var = T.Var("k", "int32")
        left = at(a, var, i) if attrs.transpose_A else at(a, i, var)
        right = at(b, j, var) if attrs.transpose_B else at(b, var, j)
        lead = [zero] * (len(region_extents(c)) - 2)
        start = T.const(0, dtype) if attrs.clear_accum else load_element(c, [*lead, i, j], dtype)
        old = T.BufferLoad(total, [zero])
        return T.SeqStmt(
            [
                T.AllocBuffer(total),
                T.BufferStore(total, start, [zero]),
                T.For(
                    var, 0, k, T.ForKind.SERIAL, T.BufferStore(total, old + left * right, [zero])
                ),
                store(c, [*lead, i, j], T.BufferLoad(total, [zero]), call.span),
            ]
        )

    return nest([m, n], body, call.span)


def matrix_operands(call: TileCall, threads: int, arch: int) -> Any:
    """What layout inference must know: the distributions of fragment operands, or None."""
    plan, _ = plan_gemm(call, threads, arch)
    return None if plan is None else plan.operands(call)


class _Gemm:
    """The code of one product in one warp."""

    def __init__(self, call: TileCall, plan: GemmPlan, ctx: SimtContext) -> None:
        self.call, self.plan, self.ctx = call, plan, ctx
        self.lane = ctx.simplify(ctx.thread % 32)
        warp = ctx.thread // 32
        self.warp_m: Any = warp % plan.warp_m if plan.warp_m > 1 else 0
        self.warp_n: Any = warp // plan.warp_m if plan.warp_n > 1 else 0

    def statement(self) -> T.Stmt:
        plan, step = self.plan, self.plan.instruction
        ki = T.Var("ki", "int32")
        self.ctx.analyzer.bind(ki, ir.Range(0, plan.k_tiles), True)
        accumulator, before, after = self._accumulator()
        a, load_a = self._operand("A", ki)
        b, load_b = self._operand("B", ki)
        mi, ni = T.Var("mi", "int32"), T.Var("ni", "int32")
        product = simt.call(
            "mma",
            step.name,
            _address(accumulator, (mi * plan.n_tiles + ni) * step.c_elements),
            a(mi),
            b(ni),
            span=self.call.span,
        )
        inner = _unrolled([(mi, plan.m_tiles), (ni, plan.n_tiles)], product)
        body = T.stmt_seq(*load_a, *load_b, inner)
        return T.stmt_seq(*before, _unrolled([(ki, plan.k_tiles)], body), *after)

    # -- the accumulator -----------------------------------------------------------------------
    def _accumulator(self) -> tuple[ir.Var, list[T.Stmt], list[T.Stmt]]:
        """The registers that accumulate, what fills them before and what stores them after."""
        call, plan, ctx = self.call, self.plan, self.ctx
        c = call.operand("C")
        wide = plan.instruction.accumulator
        if ctx.is_tile(c.source) and dtype_of(c) == wide:
            registers = ctx.tile(c.source).registers
            clear = [self._zero(registers, wide)] if call.attrs.clear_accum else []
            return registers, clear, []
        registers = register_array("acc", plan.c.num_slots, wide, 16)
        before: list[T.Stmt] = [T.AllocBuffer(registers)]
        if call.attrs.clear_accum:
            before.append(self._zero(registers, wide))
        else:
            before.append(
                self._each(
                    plan.c,
                    lambda slot, at: T.BufferStore(registers, self._c(slot, at, wide), [slot]),
                )
            )
        after = self._each(plan.c, lambda slot, at: self._put_c(registers, slot, at))
        return registers, before, [after]

    def _zero(self, registers: ir.Var, dtype: str) -> T.Stmt:
        r = T.Var("r", "int32")
        fill = T.BufferStore(registers, T.const(0, dtype), [r])
        return _unrolled([(r, self.plan.c.num_slots)], fill)

    def _c(self, slot: Any, at: Sequence[Any], dtype: str) -> ir.Expr:
        c = self.call.operand("C")
        if self.ctx.is_tile(c.source):
            value = T.BufferLoad(self.ctx.tile(c.source).registers, [slot])
            return value if dtype_of(value) == dtype else value.astype(dtype)
        return load_element(c, self._lead(c, at), dtype)

    def _put_c(self, registers: ir.Var, slot: Any, at: Sequence[Any]) -> T.Stmt:
        c, value = self.call.operand("C"), T.BufferLoad(registers, [slot])
        if self.ctx.is_tile(c.source):
            target = self.ctx.tile(c.source).registers
            return T.BufferStore(target, value.astype(dtype_of(target)), [slot])
        return store(c, self._lead(c, at), value, self.call.span)

    @staticmethod
    def _lead(region: ir.TensorRegion, at: Sequence[Any]) -> list[Any]:
        return [T.const(0, "int32")] * (len(region_extents(region)) - 2) + list(at)

    def _each(self, tile: Distribution, body: Callable[[Any, Sequence[Any]], T.Stmt]) -> T.Stmt:
        """Run ``body(slot, indices)`` for every register of a tile."""
        variables = [T.Var(f"r{n}", "int32") for n in range(len(tile.slots))]
        for var, part in zip(variables, tile.slots, strict=True):
            self.ctx.analyzer.bind(var, ir.Range(0, part.extent), True)
        slot: Any = T.const(0, "int32")
        for var, part in zip(variables, tile.slots, strict=True):
            slot = slot + var * part.stride
        at = [self.ctx.simplify(_expr(i)) for i in tile.indices_of(self.ctx.thread, variables)]
        stmt = body(self.ctx.simplify(slot), at)
        loops = [
            (var, part.extent)
            for var, part in reversed(list(zip(variables, tile.slots, strict=True)))
        ]
        return _unrolled(loops, stmt)

    # -- operands ------------------------------------------------------------------------------
    def _operand(self, name: str, ki: ir.Var) -> tuple[Callable[[ir.Var], ir.Expr], list[T.Stmt]]:
        """The address of tile ``i`` of an operand at step ``ki``, and what loads it there."""
        plan, step, ctx = self.plan, self.plan.instruction, self.ctx
        region = self.call.operand(name)
        elements = step.a_elements if name == "A" else step.b_elements
        tiles = plan.m_tiles if name == "A" else plan.n_tiles
        rounded = step.a == "tf32"
        if ctx.is_tile(region.source) and not rounded:
            registers = ctx.tile(region.source).registers
            return (
                lambda i: _address(registers, (i * plan.k_tiles + ki) * elements),
                [],
            )
        dtype = dtype_of(region)
        registers = register_array(name.lower() + "_frag", tiles * elements, dtype, 16)
        steps: list[T.Stmt] = [T.AllocBuffer(registers)]
        if ctx.is_tile(region.source):
            own = ctx.tile(region.source).registers
            at = lambda i, r: T.BufferLoad(own, [(i * plan.k_tiles + ki) * elements + r])  # noqa: E731
            steps.append(_rounded(registers, tiles, elements, at))
        else:
            steps.append(
                self._by_ldmatrix(name, registers, ki) or self._by_element(name, registers, ki)
            )
            if rounded:
                at = lambda i, r: T.BufferLoad(registers, [i * elements + r])  # noqa: E731
                steps.append(_rounded(registers, tiles, elements, at))
        return lambda i: _address(registers, i * elements), steps

    def _transposed(self, name: str) -> bool:
        """Whether k is not the operand's last dimension."""
        if name == "A":
            return bool(self.call.attrs.transpose_A)
        return not self.call.attrs.transpose_B

    def _by_ldmatrix(self, name: str, registers: ir.Var, ki: ir.Var) -> T.Stmt | None:
        """Load tiles row by row through ``ldmatrix``; None where rows are not 16 bytes apart."""
        plan, step, ctx = self.plan, self.plan.instruction, self.ctx
        region = self.call.operand(name)
        bits = dtype_bits(dtype_of(region))
        turned = self._transposed(name)
        row = 128 // bits
        if not str(region.source.scope()).startswith("shared") or bits > 32:
            return None
        if turned and bits != 16:
            return None
        if not self._rows_aligned(region, row):
            return None
        across = step.m_registers if name == "A" else 1
        tiles = plan.m_tiles if name == "A" else plan.n_tiles
        pair = 2 if name == "B" and tiles % 2 == 0 and step.k_registers * 2 <= 4 else 1
        number = across * step.k_registers * pair
        if number not in (1, 2, 4):
            return None
        matrix = self.lane // 8 % number if number > 1 else T.const(0, "int32")
        within = self.lane % 8
        if name == "A":
            side = matrix % across if across > 1 else 0
            along = matrix // across
        else:
            along = matrix % step.k_registers if step.k_registers > 1 else 0
            side = matrix // step.k_registers
        tile = T.Var("t", "int32")
        ctx.analyzer.bind(tile, ir.Range(0, tiles // pair), True)
        extent = step.m if name == "A" else step.n
        base = self._base(name) + tile * (extent * pair)
        k = ki * step.k + along * (4 * step.pack)
        if turned:
            at = [k + within, base + side * 8]
        else:
            at = [base + side * 8 + within, k]
        elements = (step.a_elements if name == "A" else step.b_elements) * pair
        source = self._address_of(region, [ctx.simplify(_expr(i)) for i in at])
        load = simt.call(
            "ldmatrix", _address(registers, tile * elements), source, number, int(turned),
            span=self.call.span,
        )  # fmt: skip
        return _unrolled([(tile, tiles // pair)], load)

    def _base(self, name: str) -> Any:
        """First row (A) or column (B) of this warp."""
        if name == "A":
            return self.warp_m * (self.plan.m // self.plan.warp_m)
        return self.warp_n * (self.plan.n // self.plan.warp_n)

    def _rows_aligned(self, region: ir.TensorRegion, row: int) -> bool:
        """Whether 16-byte pieces of rows stay whole in the storage of ``region``."""
        buffer = region.source
        layout = self.ctx.layouts(buffer)
        mins = region_mins(region)
        if not divides(mins[-1], row, self.ctx.analyzer):
            return False
        if layout is not None:
            return keeps_vectors(layout, row)
        last = const_int(buffer.shape[-1])
        return last is not None and last % row == 0

    @staticmethod
    def _address_of(region: ir.TensorRegion, at: Sequence[Any]) -> ir.Expr:
        mins = region_mins(region)
        lead = list(mins[:-2])
        return T.address_of(
            T.BufferLoad(region.source, [*lead, mins[-2] + at[0], mins[-1] + at[1]])
        )

    def _by_element(self, name: str, registers: ir.Var, ki: ir.Var) -> T.Stmt:
        """Load every element by itself, wherever it lies."""
        plan, step, ctx = self.plan, self.plan.instruction, self.ctx
        region = self.call.operand(name)
        tile = plan.a if name == "A" else plan.b
        k_axis = 1 if name == "A" else 0
        variables: list[Any] = []
        loops: list[tuple[ir.Var, int]] = []
        slot: Any = T.const(0, "int32")
        stride = 1
        for number, part in enumerate(tile.slots):
            if part.axis == k_axis and part.divisor == step.k:
                variables.append(ki)
                continue
            var = T.Var(f"r{number}", "int32")
            ctx.analyzer.bind(var, ir.Range(0, part.extent), True)
            variables.append(var)
            loops.append((var, part.extent))
            slot = slot + var * stride
            stride *= part.extent
        at = [ctx.simplify(_expr(i)) for i in tile.indices_of(ctx.thread, variables)]
        if name == "A" and self.call.attrs.transpose_A:
            at = at[::-1]
        if name == "B" and self.call.attrs.transpose_B:
            at = at[::-1]
        value = load_element(region, self._lead(region, at))
        put = T.BufferStore(registers, value, [ctx.simplify(slot)])
        return _unrolled(list(reversed(loops)), put)


def _rounded(
    registers: ir.Var, tiles: int, elements: int, source: Callable[[Any, Any], ir.Expr]
) -> T.Stmt:
    """``registers[i * elements + r]`` = ``source(i, r)`` to the nearest tf32.

    The instruction itself would drop the low bits.
    """
    i, r = T.Var("i", "int32"), T.Var("r", "int32")
    value = source(i, r)
    nearest = ir.Call(intrin.get("round_tfloat32").op, [value], ret_ty=value.ty)
    put = T.BufferStore(registers, nearest, [i * elements + r])
    return _unrolled([(i, tiles), (r, elements)], put)


def _expr(value: Any) -> ir.Expr:
    return value if isinstance(value, ir.Expr) else T.const(int(value), "int32")


def _address(buffer: ir.Var, index: Any) -> ir.Expr:
    return T.address_of(T.BufferLoad(buffer, [_expr(index)]))


def _unrolled(loops: Sequence[tuple[ir.Var, int]], body: T.Stmt) -> T.Stmt:
    """Nested unrolled loops, outermost first; every extent is kept, also 1."""
    for var, extent in reversed(loops):
        body = T.For(var, 0, extent, _UNROLLED, body)
    return body
