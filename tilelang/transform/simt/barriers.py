"""Barriers where threads exchange data through memory.

A walk in program order keeps what has been read and written since the last barrier; a statement
that touches the same place in a conflicting way gets a barrier in front. What one nest or op does
is a unit: its iterations do not depend on each other. Loops are walked until what is pending at
their end also is what is pending at their start.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tvm import ir, sym
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.errors import LoweringError
from tilelang.ir import intrin
from tilelang.ir.expr import const_int
from tilelang.transform.simt.access_map import mentions
from tilelang.transform.simt.launch import launch_of
from tilelang.transform.simt.memory import Touch, is_shared, touches_of
from tilelang.transform.simt.private import stay_in_thread
from tilelang.transform.simt.sites import view_of
from tilelang.transform.simt.uniform import Uniformity

__all__ = ["UNIT", "place_barriers", "unit"]

#: Attribute around the code of one nest or op, which needs no barrier inside.
UNIT = "tl.unit"
_SYNC = "tl.sync_threads"
#: Iterations that are told apart before what is pending counts as of any iteration.
_ROUNDS = 8


def unit(body: T.Stmt, span: ir.Span | None = None) -> T.Stmt:
    """Mark ``body`` as one step of the block: its parts do not depend on each other."""
    return T.AttrStmt(T.const(0, "int32"), UNIT, T.const(0, "int32"), body, span)


@dataclass
class _Walk:
    places: Mapping[ir.Var, tuple[int, int]]
    uniformity: Uniformity
    views: Mapping[ir.Var, ir.Var] = field(default_factory=dict)
    analyzer: sym.Analyzer = field(default_factory=sym.Analyzer)
    pending: list[Touch] = field(default_factory=list)
    placed: int = 0
    loops: list[ir.Var] = field(default_factory=list)
    threads: dict[ir.Var, tuple[int, int]] = field(default_factory=dict)
    ranges: dict[ir.Var, tuple[int, int]] = field(default_factory=dict)

    def storage(self, buffer: ir.Var) -> ir.Var:
        """The buffer that ``buffer`` is another name of."""
        while buffer in self.views:
            buffer = self.views[buffer]
        return buffer


def place_barriers(
    func: T.PrimFunc, places: Mapping[ir.Var, tuple[int, int]], threads: int
) -> T.PrimFunc:
    """Insert ``T.sync_threads()`` where a conflict is not ordered yet.

    Parameters
    ----------
    places : mapping of shared buffer to (offset, bytes)
        Buffers that overlap in the arena conflict with each other.
    threads : int
        A block of one thread needs no barrier; one of a single warp still does.

    Raises
    ------
    LoweringError
        If a barrier would stand where only some threads come by.

    Before: ``S[tx] = x; y = S[tx ^ 1]``. After: ``S[tx] = x; T.sync_threads(); y = S[tx ^ 1]``.
    """
    if threads == 1:
        return func.with_body(_without_units(func.body))
    walk = _Walk(places, Uniformity(func), _views(func.body))
    launch = launch_of(func)
    for loop in launch.loops:
        if str(loop.thread_binding.thread_tag).startswith("threadIdx"):
            walk.threads[loop.loop_var] = (0, const_int(loop.extent) or 1)
    return func.with_body(launch.around(_without_units(_stmt(walk, launch.body))))


def _views(body: T.Stmt) -> dict[ir.Var, ir.Var]:
    found: dict[ir.Var, ir.Var] = {}

    def on_declare(stmt: T.DeclBuffer) -> None:
        source = view_of(stmt)
        if source is not None:
            found[stmt.buffer] = source

    structural_walk(body, (T.DeclBuffer, on_declare))
    return found


def _without_units(body: T.Stmt) -> T.Stmt:
    return structural_map(body, (T.AttrStmt, lambda s: s.body if s.attr_key == UNIT else s))


def _stmt(walk: _Walk, stmt: Any) -> Any:
    if isinstance(stmt, T.SeqStmt):
        return T.stmt_seq(*[_stmt(walk, child) for child in stmt.seq])
    if isinstance(stmt, T.DeclBuffer):
        return stmt
    if isinstance(stmt, T.AttrStmt) and stmt.attr_key == UNIT:
        return _step(walk, stmt, touches_of(stmt))
    if isinstance(stmt, T.AttrStmt):
        body = _stmt(walk, stmt.body)
        return T.AttrStmt(stmt.node, stmt.attr_key, stmt.value, body, stmt.span)
    if isinstance(stmt, (T.For, T.While)):
        return _loop(walk, stmt)
    if isinstance(stmt, T.IfThenElse):
        return _branch(walk, stmt)
    if _is_barrier(stmt):
        walk.pending = []
        return stmt
    return _step(walk, stmt, _of_threads(stmt))


def _of_threads(root: Any) -> list[Touch]:
    """The accesses of code that every thread runs for itself."""
    return [replace(touch, place=touch.indices) for touch in touches_of(root)]


def _is_barrier(stmt: Any) -> bool:
    value = stmt.value if isinstance(stmt, T.Evaluate) else None
    if not isinstance(value, ir.Call) or not isinstance(value.op, ir.Op):
        return False
    name = value.op.name
    return (name == _SYNC and not value.args) or name.startswith("tl.syncthreads_")


def _step(walk: _Walk, stmt: Any, touches: list[Touch]) -> Any:
    barrier = _meet(walk, touches)
    return T.SeqStmt([_sync(stmt.span), stmt]) if barrier else stmt


def _meet(walk: _Walk, touches: list[Touch]) -> bool:
    """Take ``touches`` into account; whether a barrier must stand before them."""
    barrier = _needs_barrier(walk, touches)
    if barrier:
        walk.pending = []
        walk.placed += 1
    walk.pending = _merged(walk.pending, touches)
    return barrier


def _sync(span: ir.Span | None) -> T.Stmt:
    call = intrin.get("sync_threads")
    return T.Evaluate(ir.Call(call.op, [], ret_ty="void", span=span), span)


def _merged(pending: list[Touch], touches: list[Touch]) -> list[Touch]:
    """Both lists; touches of one buffer that are not told apart become one, of any version."""
    places = {_key(t): i for i, t in enumerate(pending)}
    result = list(pending)
    for touch in touches:
        at = places.setdefault(_key(touch), len(result))
        if at == len(result):
            result.append(touch)
        elif _first(result[at]) != _first(touch):
            result[at] = replace(touch, indices=None)
    return result


def _key(touch: Touch) -> tuple[Any, ...]:
    place = "" if touch.place is None else str(list(touch.place))
    return touch.buffer, touch.mode, _text(touch), place


def _first(touch: Touch) -> str:
    """The first index, which may be a version."""
    return "" if touch.indices is None or len(touch.indices) < 2 else str(touch.indices[0])


def _text(touch: Touch) -> str:
    """The version of the buffer that is touched, where two versions can be told apart."""
    if touch.indices is None or len(touch.indices) < 2:
        return ""
    return _first(touch) if isinstance(touch.indices[0], (T.IntImm, T.FloorMod)) else ""


def _needs_barrier(walk: _Walk, touches: list[Touch]) -> bool:
    return any(
        new.conflicts(old) and _may_meet(walk, new, old) for new in touches for old in walk.pending
    )


def _may_meet(walk: _Walk, a: Touch, b: Touch) -> bool:
    """Whether two touches may be of the same bytes."""
    if a.place is not None and b.place is not None and _apart(walk, a, b):
        return False
    if not a.buffer.same_as(b.buffer):
        one, other = walk.storage(a.buffer), walk.storage(b.buffer)
        if one.same_as(other):
            return True
        first, second = walk.places.get(one), walk.places.get(other)
        if first is None or second is None:
            return False
        return first[0] < second[0] + second[1] and second[0] < first[0] + first[1]
    if a.indices is None or b.indices is None or len(a.indices) < 2:
        return True
    return not _other_version(walk, a.indices[0], b.indices[0])


def _apart(walk: _Walk, a: Touch, b: Touch) -> bool:
    """Whether code of single threads needs no order here.

    Global memory is ordered by whoever writes thread programs. In shared memory a thread may do as
    it likes with elements that no other thread touches.
    """
    if not (is_shared(a.buffer) and is_shared(b.buffer)):
        return True
    if not a.buffer.same_as(b.buffer):
        return False
    return stay_in_thread(a.place or (), b.place or (), walk.threads, walk.ranges)


def _other_version(walk: _Walk, a: ir.Expr, b: ir.Expr) -> bool:
    """Whether two first indices, such as the versions ``(k + c) % n``, always differ.

    Only variables of the loops around both are known to have one value there; another may differ
    from thread to thread, or from one time around to the next.
    """
    if not (_is_known(walk, a) and _is_known(walk, b)):
        return False
    if not isinstance(a, T.FloorMod) and not isinstance(b, T.FloorMod):
        distance = const_int(walk.analyzer.simplify(a - b))
        return distance is not None and distance != 0
    if isinstance(a, T.FloorMod) and isinstance(b, T.FloorMod):
        n, m = const_int(a.b), const_int(b.b)
        distance = const_int(walk.analyzer.simplify(a.a - b.a))
        return n is not None and n == m and distance is not None and distance % n != 0
    return False


def _is_known(walk: _Walk, index: ir.Expr) -> bool:
    used: list[ir.Var] = []
    structural_walk(index, (ir.Var, used.append))
    return all(any(var.same_as(known) for known in walk.loops) for var in used)


def _loop(walk: _Walk, loop: Any) -> Any:
    if walk.uniformity.is_uniform_loop(loop):
        return _rounds(walk, loop)
    return _parting(walk, loop, lambda inner: _rounds(inner, loop, together=False))


def _rounds(walk: _Walk, loop: Any, together: bool = True) -> Any:
    """Walk a loop until what is pending at its end is what is pending at its start.

    Only where threads run it ``together`` does its variable tell versions apart.
    """
    bounds = [loop.condition] if isinstance(loop, T.While) else [loop.min, loop.extent]
    tested = [touch for bound in bounds for touch in _of_threads(bound)]
    first = _meet(walk, tested)
    before = walk.pending
    counted = together and isinstance(loop, T.For)
    if counted:
        walk.loops.append(loop.loop_var)
        _note_range(walk, loop)
    entry, body = list(before), loop.body
    for number in itertools.count():
        walk.pending = list(entry)
        body = _stmt(walk, loop.body)
        if isinstance(loop, T.While) and _meet(walk, tested):
            body = T.stmt_seq(body, _sync(loop.span))
        again = _merged(entry, _next_iteration(loop, walk.pending))
        if number >= _ROUNDS and isinstance(loop, T.For):  # each iteration adds a version
            again = _merged([], [_at_any_time(touch, loop.loop_var) for touch in again])
        if [_first(touch) for touch in again] == [_first(touch) for touch in entry]:
            break
        entry = again
    walk.pending = _merged(before, walk.pending)
    if counted:
        walk.loops.pop()
    if isinstance(loop, T.For):
        walk.pending = [_at_any_time(touch, loop.loop_var) for touch in walk.pending]
    result: Any
    if isinstance(loop, T.While):
        result = T.While(loop.condition, body, loop.span)
    else:
        result = T.For(
            loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding,
            loop.annotations, loop.step, loop.span,
        )  # fmt: skip
    return T.SeqStmt([_sync(loop.span), result]) if first else result


def _next_iteration(loop: Any, pending: list[Touch]) -> list[Touch]:
    """``pending`` as the next iteration sees it: version ``k % n`` is ``(k - 1) % n`` there."""
    if isinstance(loop, T.While):
        return pending
    var = loop.loop_var
    step = 1 if loop.step is None else loop.step

    def earlier(touch: Touch) -> Touch:
        if touch.indices is None or not isinstance(touch.indices[0], T.FloorMod):
            return _at_any_time(touch, var)
        moved = tuple(
            structural_map(i, (ir.Var, lambda v: v - step if v.same_as(var) else v))
            for i in touch.indices
        )
        return replace(touch, indices=moved)

    return [earlier(t) for t in pending]


def _at_any_time(touch: Touch, var: ir.Var) -> Touch:
    """``touch`` behind the loop of ``var``: which iteration it was of is not known any more."""
    if touch.indices is None or not mentions(list(touch.indices[:1]), [var]):
        return touch
    return replace(touch, indices=None)


def _branch(walk: _Walk, stmt: T.IfThenElse) -> Any:
    if not walk.uniformity.is_uniform(stmt.condition):
        return _parting(walk, stmt, lambda inner: _cases(inner, stmt))
    first = _meet(walk, _of_threads(stmt.condition))
    start = list(walk.pending)
    then_case = _stmt(walk, stmt.then_case)
    after = walk.pending
    walk.pending = start
    else_case = None if stmt.else_case is None else _stmt(walk, stmt.else_case)
    walk.pending = _merged(after, walk.pending)
    result = T.IfThenElse(stmt.condition, then_case, else_case, stmt.span)
    return T.SeqStmt([_sync(stmt.span), result]) if first else result


def _cases(walk: _Walk, stmt: T.IfThenElse) -> None:
    for case in (stmt.then_case, stmt.else_case):
        if case is not None:
            walk.pending = []
            _stmt(walk, case)


def _parting(walk: _Walk, stmt: Any, visit: Callable[[_Walk], Any]) -> Any:
    """Threads part at ``stmt``: a barrier may stand before it, never inside.

    ``visit`` walks what is inside; nothing is pending there at first.
    """
    touches = _of_threads(stmt)
    for loop in _loops_in(stmt):
        _note_range(walk, loop)
    before = _needs_barrier(walk, touches)
    inner = replace(walk, pending=[], placed=0, loops=[])
    visit(inner)
    if inner.placed:
        raise _divergent(stmt.span)
    walk.pending = _merged([] if before else walk.pending, touches)
    if not before:
        return stmt
    walk.placed += 1
    return T.SeqStmt([_sync(stmt.span), stmt])


def _note_range(walk: _Walk, loop: T.For) -> None:
    first, extent = const_int(loop.min), const_int(loop.extent)
    if (
        first is not None
        and extent  # a loop without iterations has no values to look at
        and (loop.step is None or const_int(loop.step) == 1)
    ):
        walk.ranges[loop.loop_var] = (first, extent)


def _loops_in(root: Any) -> list[T.For]:
    found: list[T.For] = []
    structural_walk(root, (T.For, found.append))
    return found


def _divergent(span: ir.Span | None) -> LoweringError:
    return LoweringError(
        "threads exchange data through memory inside a branch or loop that not all of them enter; "
        "no barrier can stand there. Make the condition the same for all threads of a block, or "
        "move the exchange out of it",
        span,
    )
