"""Thread programs as Python functions over all threads of a block at once."""

from __future__ import annotations

import math

import numpy as np
from block_memory import Fault, check_alignment, numpy_dtype
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.cuda.intrinsics.mma_rows import mma_row
from tilelang.ir.expr import dtype_of

__all__ = ["BlockCode"]


def _truncated(a, b):
    return np.trunc(np.true_divide(a, b)).astype(np.result_type(a, b))


def _divided(a, b):
    integer = np.issubdtype(np.result_type(a, b), np.integer)
    return _truncated(a, b) if integer else a / b


_BINARY = {
    T.Add: np.add, T.Sub: np.subtract, T.Mul: np.multiply, T.Div: _divided, T.Mod: np.fmod,
    T.FloorDiv: np.floor_divide, T.FloorMod: np.mod, T.Min: np.fmin, T.Max: np.fmax,
    T.LT: np.less, T.LE: np.less_equal, T.GT: np.greater, T.GE: np.greater_equal,
    T.EQ: np.equal, T.NE: np.not_equal, T.LShift: np.left_shift, T.RShift: np.right_shift,
    T.BitwiseAnd: np.bitwise_and, T.BitwiseOr: np.bitwise_or, T.BitwiseXor: np.bitwise_xor,
}  # fmt: skip
_FUNCTIONS = {
    **{
        f"tl.num.{name}": function
        for name, function in {
            "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.fmax, "min": np.fmin,
            "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
            "gt": np.greater, "ge": np.greater_equal, "keep": lambda x: x,
            "float_to_int": lambda x: x, "truncdiv": _truncated, "truncmod": np.fmod,
            "floordiv": np.floor_divide, "floormod": np.mod,
        }.items()
    },
    "tl.round_tfloat32": lambda x: x,  # of small whole numbers
    "tirx.exp2": np.exp2, "tirx.fabs": np.abs, "prim.fabs": np.abs, "tirx.isnan": np.isnan,
}  # fmt: skip


#: The lane that a shuffle reads, within its group; a lane outside of it gets its own value.
_SHUFFLES = {
    "tl.shfl_xor": np.bitwise_xor, "tl.shfl_up": np.subtract, "tl.shfl_down": np.add,
    "tl.shfl_sync": lambda lane, source: source + 0 * lane,
}  # fmt: skip


class _Registers:
    """A register array: a row for each thread."""

    def __init__(self, threads, size, dtype, alignment):
        self.values = np.empty((threads, size), dtype)
        self.bytes = self.values.view(np.uint8)
        self.alignment = alignment

    def at(self, index, size):
        """Byte positions (lanes, size) from element ``index``."""
        first = np.asarray(index, np.int64) * self.values.itemsize
        return first[:, None] + np.arange(size)


class _Shared:
    """A view of the arena or of a tensor."""

    def __init__(self, memory, offset, size, dtype):
        self.memory, self.offset, self.dtype = memory, offset, dtype
        self.end = memory().raw.size if size is None else offset + size * dtype.itemsize

    def at(self, index, size):
        first = np.asarray(index, np.int64) * self.dtype.itemsize + self.offset
        if first.size and (first.min() < self.offset or first.max() + size > self.end):
            raise Fault(f"an access past the end of a buffer of {self.memory().name}")
        return first[:, None] + np.arange(size)


class BlockCode:
    """The code of one kernel; ``run(mask)`` runs it for the threads of a mask."""

    def __init__(self, func, machine):
        self.machine, self.threads = machine, machine.threads
        self.env = {}
        self.buffers = {}
        self.left = np.zeros(self.threads, np.bool_)  # of an iteration
        self.gone = np.zeros(self.threads, np.bool_)  # from the innermost loop
        for param in func.params:
            if str(param.name) in machine.tensors:
                memory = machine.tensors[str(param.name)]
                dtype = numpy_dtype(dtype_of(param))
                self.buffers[param] = _Shared(lambda m=memory: m, 0, None, dtype)
            else:
                dtype = numpy_dtype(dtype_of(param))
                self.env[self._slot(param)] = dtype.type(machine.scalars[str(param.name)])
        self.run = self.stmt(func.body)

    def _slot(self, var):
        """The key of a variable; nodes come back as fresh wrappers of one object."""
        return hash(var)

    # -- statements ------------------------------------------------------------------------------
    def stmt(self, stmt):
        return getattr(self, f"_{type(stmt).__name__}")(stmt)

    def _SeqStmt(self, seq):
        steps = [self.stmt(s) for s in seq.seq]

        def run(mask):
            for step in steps:
                if self.left.any():
                    mask = mask & ~self.left
                    if not mask.any():
                        return
                step(mask)

        return run

    def _AttrStmt(self, attr):
        return self.stmt(attr.body)

    def _AllocBuffer(self, stmt):
        buffer = stmt.buffer
        size = math.prod(int(e) for e in buffer.shape)
        dtype = numpy_dtype(dtype_of(buffer))
        registers = _Registers(self.threads, size, dtype, int(buffer.ty.data_alignment))
        self.buffers[buffer] = registers

        def run(mask):
            raw = registers.bytes
            raw[mask] = 0xFF

        return run

    def _DeclBuffer(self, stmt):
        buffer, data = stmt.buffer, stmt.data
        size = math.prod(int(e) for e in buffer.shape)
        dtype = numpy_dtype(dtype_of(buffer))
        if data.op.name == "tl.shared_arena":
            offset = int(data.args[0])
            self.buffers[buffer] = _Shared(lambda: self.machine.arena, offset, size, dtype)
        else:
            source = self.buffers[data.args[0]]
            assert isinstance(source, _Shared), "views are of memory"
            self.buffers[buffer] = _Shared(source.memory, source.offset, size, dtype)
        return lambda mask: None

    def _For(self, loop):
        key = self._slot(loop.loop_var)
        low, extent = self.expr(loop.min), self.expr(loop.extent)
        dtype = numpy_dtype(dtype_of(loop.loop_var)).type
        body = self.stmt(loop.body)
        binding = loop.thread_binding
        if binding is not None:
            tag = str(binding.thread_tag)

            def bound(mask):
                axis = tag[-1]
                inside = tag.startswith("threadIdx")
                self.env[key] = (
                    self.machine.thread_index(axis)
                    if inside
                    else np.int32(self.machine.index["xyz".index(axis)])
                )
                body(mask)

            return bound
        step = 1 if loop.step is None else int(loop.step)

        def run(mask):
            start, count = np.asarray(low(mask)), np.asarray(extent(mask))
            outer = self.left, self.gone
            self.gone = np.zeros(self.threads, np.bool_)
            for k in range(0, int(np.max(np.where(mask, count, 0))), step):
                active = mask & (k < count) & ~self.gone
                if not active.any():
                    break
                value = start + k
                self.env[key] = dtype(value) if value.ndim == 0 else value.astype(dtype)
                self.left = np.zeros(self.threads, np.bool_)
                body(active)
            self.left, self.gone = outer

        return run

    def _While(self, loop):
        condition, body = self.expr(loop.condition), self.stmt(loop.body)

        def run(mask):
            outer = self.left, self.gone
            self.gone = np.zeros(self.threads, np.bool_)
            active = mask
            for _ in range(10_000):
                active = active & ~self.gone
                active = active & condition(active)
                if not active.any():
                    break
                self.left = np.zeros(self.threads, np.bool_)
                body(active)
            else:
                raise Fault("a loop without end")
            self.left, self.gone = outer

        return run

    def _Break(self, stmt):
        def run(mask):
            self.left = self.left | mask
            self.gone = self.gone | mask

        return run

    def _Continue(self, stmt):
        def run(mask):
            self.left = self.left | mask

        return run

    def _IfThenElse(self, stmt):
        condition = self.expr(stmt.condition)
        then_case = self.stmt(stmt.then_case)
        else_case = None if stmt.else_case is None else self.stmt(stmt.else_case)

        def run(mask):
            holds = np.asarray(condition(mask), np.bool_)
            inside = mask & holds
            if inside.any():
                then_case(inside)
            if else_case is not None:
                outside = mask & ~holds
                if outside.any():
                    else_case(outside)

        return run

    def _Bind(self, bind):
        key, value = self._slot(bind.var), self.expr(bind.value)

        def run(mask):
            new = np.asarray(value(mask))
            old = self.env.get(key)
            if mask.all() or old is None:
                self.env[key] = new
            else:
                self.env[key] = np.where(mask, new, old)

        return run

    def _BufferStore(self, store):
        target = self.buffers[store.buffer]
        (index,) = store.indices
        index, value = self.expr(index), self.expr(store.value)
        if isinstance(target, _Registers):

            def put(mask):
                at, new = index(mask), value(mask)
                if not mask.all():
                    lanes = np.flatnonzero(mask)
                    target.values[lanes, _lanes(at, mask)] = _lanes(new, mask)
                else:
                    target.values[self.machine.number, at] = new

            return put
        dtype = target.dtype

        def run(mask):
            lanes = self.machine.number[mask]
            data = np.ascontiguousarray(
                np.broadcast_to(_lanes(value(mask), mask), lanes.shape), dtype
            )
            at = target.at(np.broadcast_to(_lanes(index(mask), mask), lanes.shape), dtype.itemsize)
            target.memory().write(at, lanes, data.view(np.uint8).reshape(at.shape), target.end)

        return run

    def _Evaluate(self, stmt):
        value = stmt.value
        if not isinstance(value, ir.Call):
            return lambda mask: None
        name = value.op.name
        if name in ("tirx.break_loop", "tirx.continue_loop"):
            return self._Break(stmt) if name == "tirx.break_loop" else self._Continue(stmt)
        special = getattr(self, "_op_" + name.rpartition(".")[2], None)
        if special is not None:
            return special(value)
        return self.expr(value)

    # -- operations ------------------------------------------------------------------------------
    def _pointer(self, call):
        """``place(mask, size) -> (holder, byte positions)`` of an address."""
        assert call.op.name == "tirx.address_of"
        load = call.args[0]
        holder, (index,) = self.buffers[load.source], load.indices
        index = self.expr(index)

        def place(mask, size):
            lanes = self.machine.number[mask]
            return holder, holder.at(np.broadcast_to(_lanes(index(mask), mask), lanes.shape), size)

        return place

    def _take(self, holder, at, lanes, wide):
        if isinstance(holder, _Registers):
            if wide and holder.alignment % min(wide, 16):
                raise Fault(f"an access of {wide} bytes to registers aligned to {holder.alignment}")
            return holder.bytes[lanes[:, None], at]
        return holder.memory().read(at, lanes, holder.end)

    def _give(self, holder, at, lanes, data, wide):
        if isinstance(holder, _Registers):
            if wide and holder.alignment % min(wide, 16):
                raise Fault(f"an access of {wide} bytes to registers aligned to {holder.alignment}")
            holder.bytes[lanes[:, None], at] = data
        else:
            holder.memory().write(at, lanes, data, holder.end)

    def _op_vec_copy(self, call):
        target, source = self._pointer(call.args[0]), self._pointer(call.args[1])
        size = int(call.args[2])

        def run(mask):
            lanes = self.machine.number[mask]
            (to, to_at), (origin, from_at) = target(mask, size), source(mask, size)
            check_alignment(to_at, size, "a store")
            check_alignment(from_at, size, "a load")
            self._give(to, to_at, lanes, self._take(origin, from_at, lanes, size), size)

        return run

    def _op_vec_zero(self, call):
        target, size = self._pointer(call.args[0]), int(call.args[1])

        def run(mask):
            to, at = target(mask, size)
            check_alignment(at, size, "a store")
            self._give(to, at, self.machine.number[mask], np.zeros(at.shape, np.uint8), size)

        return run

    def _op_cp_async(self, call):
        target, source = self._pointer(call.args[0]), call.args[1].args[0]
        size, wanted = int(call.args[2]), self.expr(call.args[3])
        origin, (index,) = self.buffers[source.source], source.indices
        index = self.expr(index)

        def run(mask):
            lanes = self.machine.number[mask]
            holds = np.broadcast_to(_lanes(np.asarray(wanted(mask), np.bool_), mask), lanes.shape)
            to, at = target(mask, size)
            start = np.broadcast_to(_lanes(index(mask), mask), lanes.shape)
            from_at = origin.at(np.where(holds, start, 0), size)
            check_alignment(at, size, "an asynchronous store")
            check_alignment(from_at, size, "an asynchronous load")
            self.machine.start_copy(to.memory(), at, origin.memory(), from_at, lanes, holds)

        return run

    def _op_cp_async_commit(self, call):
        return self.machine.commit

    def _op_cp_async_wait(self, call):
        pending = int(call.args[0])
        return lambda mask: self.machine.wait(pending, mask)

    def _op_sync_threads(self, call):
        assert not call.args, "named barriers are not modelled"
        return self.machine.barrier

    def _op_atomic(self, call):
        assert str(call.attrs.kind) == "add", "other atomics are not modelled"
        target, value = call.args
        holder, (index,) = self.buffers[target.source], target.indices
        index, value = self.expr(index), self.expr(value)
        dtype = holder.dtype

        def run(mask):
            lanes = self.machine.number[mask]
            at = holder.at(np.broadcast_to(_lanes(index(mask), mask), lanes.shape), dtype.itemsize)
            data = np.broadcast_to(_lanes(value(mask), mask), lanes.shape).astype(dtype)
            holder.memory().add(at, data)

        return run

    def _op_ldmatrix(self, call):
        target, source = self._pointer(call.args[0]), self._pointer(call.args[1])
        number, turned = int(call.args[2]), int(call.args[3])
        lane = np.arange(32)

        def run(mask):
            warps = self.machine.need_warps(mask, "ldmatrix")
            holder, rows = source(mask, 16)
            check_alignment(rows, 16, "ldmatrix")
            rows = rows.reshape(len(warps), 32, 16)
            to, to_at = target(mask, 4 * number)
            lanes = self.machine.number[mask]
            words = []
            for matrix in range(number):
                eight = rows[:, matrix * 8 : matrix * 8 + 8]  # (warps, rows, bytes)
                if turned:
                    row = np.repeat(lane[:, None] % 4 * 2 + [0, 1], 2, 1)
                    byte = (lane // 4 * 2)[:, None] + [0, 1, 0, 1]
                    words.append(eight[:, row, byte])
                else:
                    byte = (lane % 4 * 4)[:, None] + np.arange(4)
                    words.append(eight[:, (lane // 4)[:, None], byte])
            at = np.concatenate(words, -1).reshape(len(lanes), 4 * number)
            self._give(to, to_at, lanes, self._take(holder, at, lanes, 0), 4 * number)

        return run

    def _op_mma(self, call):
        row = mma_row(str(call.args[0].value))
        c, a, b = (self._pointer(p) for p in call.args[1:])
        sizes = row.elements
        places = [
            np.array([[position(lane, e) for e in range(n)] for lane in range(32)]).T
            for position, n in zip(
                (row.a_position, row.b_position, row.d_position), sizes, strict=True
            )
        ]

        def values(pointer, mask, count, place, shape, warps):
            """A matrix of every warp; its elements and where they lie."""
            holder, first = pointer(mask, 1)
            item = holder.values.itemsize
            lanes = self.machine.number[mask]
            index = first[:, :1] // item + np.arange(count)
            if (index >= holder.values.shape[1]).any():
                raise Fault("mma reads past its registers")
            matrix = np.zeros((warps, *shape), holder.values.dtype)
            found = holder.values[lanes[:, None], index].reshape(warps, 32, count)
            matrix[:, place[0].T, place[1].T] = found
            return matrix, holder, lanes, index

        def run(mask):
            warps = len(self.machine.need_warps(mask, "mma"))
            left, *_ = values(a, mask, sizes[0], places[0], (row.m, row.k), warps)
            right, *_ = values(b, mask, sizes[1], places[1], (row.k, row.n), warps)
            sum_, holder, lanes, index = values(c, mask, sizes[2], places[2], (row.m, row.n), warps)
            wide = np.float64 if sum_.dtype != np.int32 else np.int64
            result = (sum_.astype(wide) + left.astype(wide) @ right.astype(wide)).astype(sum_.dtype)
            back = result[:, places[2][0].T, places[2][1].T].reshape(len(lanes), -1)
            holder.values[lanes[:, None], index] = back

        return run

    # -- expressions -----------------------------------------------------------------------------
    def expr(self, node):
        """``value(mask)``: an array over all threads, or one value for all."""
        if isinstance(node, (T.IntImm, T.FloatImm)):
            constant = numpy_dtype(dtype_of(node)).type(
                int(node.value) if isinstance(node, T.IntImm) else float(node.value)
            )
            return lambda mask: constant
        if isinstance(node, ir.TensorLoad):
            return self._load(node)
        if isinstance(node, ir.Var):
            key = self._slot(node)
            return lambda mask: self.env[key]
        if isinstance(node, prim.Cast):
            value, dtype = self.expr(node.value), numpy_dtype(dtype_of(node))
            return lambda mask: np.asarray(value(mask)).astype(dtype)
        if isinstance(node, T.Not):
            value = self.expr(node.a)
            return lambda mask: ~np.asarray(value(mask), np.bool_)
        if isinstance(node, (T.And, T.Or)):
            return self._lazy(node)
        if isinstance(node, prim.Select):
            return self._choice(node.condition, node.true_value, node.false_value)
        if isinstance(node, prim.Let):
            key, value, body = self._slot(node.var), self.expr(node.value), self.expr(node.body)

            def let(mask):
                self.env[key] = value(mask)
                return body(mask)

            return let
        if isinstance(node, ir.Call):
            return self._call(node)
        function = _BINARY[type(node)]
        a, b = self.expr(node.a), self.expr(node.b)
        return lambda mask: function(a(mask), b(mask))

    def _lazy(self, node):
        a, b, either = self.expr(node.a), self.expr(node.b), isinstance(node, T.Or)

        def run(mask):
            first = np.asarray(a(mask), np.bool_)
            rest = mask & (~first if either else first)
            if not rest.any():
                return np.broadcast_to(first, mask.shape)
            second = np.asarray(b(rest), np.bool_)
            return first | second if either else first & second

        return run

    def _choice(self, condition, one, other):
        condition, one, other = self.expr(condition), self.expr(one), self.expr(other)

        def run(mask):
            holds = np.asarray(condition(mask), np.bool_)
            first, second = mask & holds, mask & ~holds
            if not second.any():
                return one(first)
            if not first.any():
                return other(second)
            return np.where(holds, one(first), other(second))

        return run

    def _load(self, node):
        holder, (index,) = self.buffers[node.source], node.indices
        index = self.expr(index)
        if isinstance(holder, _Registers):

            def get(mask):
                at = np.asarray(index(mask))
                if at.ndim:
                    at = np.where(mask, at, 0)
                return holder.values[self.machine.number, at]

            return get
        dtype = holder.dtype

        def run(mask):
            lanes = self.machine.number[mask]
            at = holder.at(np.broadcast_to(_lanes(index(mask), mask), lanes.shape), dtype.itemsize)
            raw = holder.memory().read(at, lanes, holder.end)
            result = np.zeros(self.threads, dtype)
            result[mask] = np.ascontiguousarray(raw).view(dtype)[:, 0]
            return result

        return run

    def _call(self, node):
        name = node.op.name
        if name == "prim.if_then_else":
            return self._choice(*node.args)
        if name in _SHUFFLES:
            return self._shuffle(node, _SHUFFLES[name])
        if name in ("tl.syncthreads_count", "tl.syncthreads_or", "tl.syncthreads_and"):
            return self._agreement(node)
        if name == "tl.block_thread":
            return lambda mask: self.machine.number
        function = _FUNCTIONS[name]
        args = [self.expr(a) for a in node.args]
        dtype = numpy_dtype(dtype_of(node))
        return lambda mask: np.asarray(function(*(a(mask) for a in args))).astype(dtype)

    def _shuffle(self, node, source):
        value, distance, width = (self.expr(a) for a in node.args[:3])

        def run(mask):
            self.machine.need_warps(mask, "a shuffle")
            own = np.broadcast_to(value(mask), mask.shape)
            lane = self.machine.number % width(mask)
            other = source(lane, distance(mask))
            inside = (other >= 0) & (other < width(mask))
            return own[np.where(inside, self.machine.number - lane + other, self.machine.number)]

        return run

    def _agreement(self, node):
        value, name = self.expr(node.args[0]), node.op.name

        def run(mask):
            mine = np.broadcast_to(np.asarray(value(mask), np.bool_), mask.shape)
            self.machine.barrier(mask)
            count = int(mine.sum())
            if name == "tl.syncthreads_count":
                return np.int32(count)
            return np.int32(count > 0 if name == "tl.syncthreads_or" else count == self.threads)

        return run


def _lanes(value, mask):
    """The values of the threads in ``mask``."""
    value = np.asarray(value)
    return value if value.ndim == 0 else value[mask]
