"""Loops of a kernel: ``for i in T.serial(n)``, ``T.Parallel(m, n)``, ``T.Pipelined(k)``, ..."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder
from tilelang.ir.expr import const_int, convert, is_expr
from tilelang.ir.snapshot import snapshot
from tilelang.ir.span import user_span

__all__ = [
    "LoopSpec",
    "Parallel",
    "Persistent",
    "Pipelined",
    "Serial",
    "Unroll",
    "Vectorized",
    "grid",
    "loop_break",
    "parallel",
    "serial",
    "thread_binding",
    "unroll",
    "vectorized",
]

_Kind = T.ForKind


@dataclass(frozen=True)
class LoopSpec:
    """A loop nest that a ``for`` statement is about to open.

    ``starts``, ``extents`` have one entry per loop, outermost first. ``step`` belongs to nests of
    one loop. ``decode`` turns the loop variables into the values of the ``for`` target.
    """

    name: str
    kind: T.ForKind
    starts: tuple[ir.Expr, ...]
    extents: tuple[ir.Expr, ...]
    step: ir.Expr | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    thread_tag: str | None = None
    decode: Any = None
    span: ir.Span | None = None

    @property
    def breakable(self) -> bool:
        """Whether ``break`` leaves the whole nest and iterations run one after the other."""
        return len(self.extents) == 1 and self.kind in (_Kind.SERIAL, _Kind.UNROLLED)

    @property
    def ordered(self) -> bool:
        """Whether iterations run one after the other (``continue`` makes sense)."""
        return self.kind in (_Kind.SERIAL, _Kind.UNROLLED)

    def __iter__(self) -> Iterator[Any]:
        self._refuse_iteration()

    def _refuse_iteration(self) -> NoReturn:
        raise TraceError(
            f"{self.name} can only be looped over directly by a 'for' statement of a traced kernel "
            "(not in a comprehension, zip, enumerate or outside a kernel)",
            user_span(),
        )

    def variables(self, names: Sequence[str]) -> list[ir.Var]:
        """Fresh loop variables, named after the ``for`` target."""
        padded = [*names, *(f"i{k}" for k in range(len(names), len(self.extents)))]
        return [
            T.Var(name, extent.ty, self.span)
            for name, extent in zip(padded, self.extents, strict=False)
        ]

    def build(self, variables: Sequence[ir.Var], body: T.Stmt) -> T.Stmt:
        """The loop statement around ``body``."""
        last = len(variables) - 1
        for depth in range(last, -1, -1):
            binding = None
            if self.thread_tag is not None:
                thread = T.Var(self.thread_tag, variables[depth].ty)
                binding = T.IterVar(None, thread, T.IterVar.ThreadIndex, self.thread_tag)
            body = T.For(
                variables[depth],
                self.starts[depth],
                self.extents[depth],
                self.kind,
                body,
                binding,
                dict(self.annotations) if depth == 0 else None,
                self.step,
                self.span,
            )
        return body


def _bound(what: str, value: Any) -> ir.Expr:
    """A loop bound: an integer of at least 32 bits."""
    expr = snapshot(convert(value), "bound") if not isinstance(value, float) else None
    dtype = "" if expr is None or not isinstance(expr.ty, ir.PrimType) else str(expr.ty.dtype)
    if dtype in ("int32", "int64"):
        return expr
    if expr is not None and dtype.startswith(("int", "uint")):
        return expr.astype("int64" if dtype in ("uint32", "uint64") else "int32")
    raise TraceTypeError(f"{what} needs an integer bound, found {value!r}", user_span())


def _wide(*values: ir.Expr) -> list[ir.Expr]:
    """The values in the widest of their dtypes."""
    dtype = "int64" if any(v.ty == "int64" for v in values) else "int32"
    return [v if v.ty == dtype else convert(v, dtype) for v in values]


def _span_of(what: str, start: Any, stop: Any) -> tuple[ir.Expr, ir.Expr]:
    """Start and extent of a loop from ``start`` to ``stop``, or from 0 if only one is given."""
    if stop is None:
        extent = _bound(what, start)
        return T.const(0, str(extent.ty.dtype)), _positive(extent)
    first, last = _wide(_bound(what, start), _bound(what, stop))
    if const_int(first) == 0:
        return first, _positive(last)
    return first, _positive(last - first)


def _positive(extent: ir.Expr) -> ir.Expr:
    number = const_int(extent)
    return T.const(0, str(extent.ty.dtype)) if number is not None and number < 0 else extent


def _single(
    name: str,
    kind: T.ForKind,
    start: Any,
    stop: Any,
    annotations: Mapping[str, Any] | None = None,
    **extra: Any,
) -> LoopSpec:
    first, extent = _span_of(name, start, stop)
    notes = dict(annotations or {})
    return LoopSpec(name, kind, (first,), (extent,), annotations=notes, span=user_span(), **extra)


def _stepped(
    name: str, kind: T.ForKind, start: Any, stop: Any, step: Any, annotations: Mapping[str, Any]
) -> LoopSpec:
    amount = const_int(step) if step is not None else 1
    if amount == 1:
        return _single(name, kind, start, stop, annotations)
    if amount == 0:
        raise TraceError(f"{name}: the step must not be zero", user_span())
    if stop is None:
        start, stop = 0, start
    if amount is not None and amount < 0:
        return _descending(name, kind, start, stop, amount, annotations)
    stride, first, extent = _wide(_bound(name, step), *_span_of(name, start, stop))
    spec = _single(name, kind, first, first + extent, annotations)
    return LoopSpec(name, kind, (first,), (extent,), stride, dict(annotations), span=spec.span)


def _descending(
    name: str, kind: T.ForKind, start: Any, stop: Any, step: int, annotations: Mapping[str, Any]
) -> LoopSpec:
    """A loop that counts down becomes a loop over the number of its iterations."""
    first, last = _wide(_bound(name, start), _bound(name, stop))
    trips = _positive((first - last + (-step - 1)) // (-step))
    return LoopSpec(
        name,
        kind,
        (T.const(0, str(trips.ty.dtype)),),
        (trips,),
        annotations=dict(annotations),
        decode=lambda count: first + count * step,
        span=user_span(),
    )


def serial(
    start: Any, stop: Any = None, step: Any = None, *, annotations: Mapping[str, Any] | None = None
) -> Any:
    """A plain loop, as ``range``: iterations run one after the other.

    Parameters
    ----------
    start, stop : int or expression
        Bounds; with one argument the loop starts at 0.
    step : int or expression, optional
        A negative step must be a constant.
    annotations : mapping, optional
        Attached to the loop.

    Examples
    --------
    >>> for k in T.serial(0, n, 4): ...  # doctest: +SKIP
    """
    return _stepped("T.serial", _Kind.SERIAL, start, stop, step, annotations or {})


def unroll(
    start: Any,
    stop: Any = None,
    step: Any = None,
    *,
    explicit: bool = False,
    unroll_factor: int | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Any:
    """A serial loop whose body is repeated in the generated code.

    Parameters
    ----------
    start, stop, step : int or expression
        As in :func:`serial`.
    explicit : bool
        Expand in the IR instead of asking the device compiler.
    unroll_factor : int, optional
        How many iterations to repeat. Not together with ``explicit``.

    Raises
    ------
    TraceError
        If both options are given or the factor is below 1.
    """
    notes = dict(annotations or {})
    if explicit and unroll_factor is not None:
        raise TraceError(
            "T.unroll: explicit=True and unroll_factor exclude each other", user_span()
        )
    if unroll_factor is not None:
        if unroll_factor < 1:
            raise TraceError(
                f"T.unroll: unroll_factor must be >= 1, found {unroll_factor}", user_span()
            )
        notes["pragma_unroll_factor"] = unroll_factor
    if explicit:
        notes["tl.explicit"] = True
    return _stepped("T.unroll", _Kind.UNROLLED, start, stop, step, notes)


def vectorized(
    start: Any, stop: Any = None, *, annotations: Mapping[str, Any] | None = None
) -> Any:
    """A loop whose iterations become the lanes of vector instructions."""
    return _single("T.vectorized", _Kind.VECTORIZED, start, stop, annotations)


def Parallel(
    *extents: Any,
    coalesced_width: int | None = None,
    loop_layout: Any = None,
    prefer_async: bool | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Any:
    """An elementwise loop nest; iterations are unordered and spread over threads and lanes.

    Parameters
    ----------
    *extents : int or expression
        One per loop, all starting at 0.
    coalesced_width, loop_layout, prefer_async
        Hints; they never change the result. ``loop_layout`` is a Fragment with one input dimension
        per loop.
    annotations : mapping, optional
        The same options and others by name, attached to the outermost loop; they win.

    Examples
    --------
    >>> for i, j in T.Parallel(64, 64):  # doctest: +SKIP
    ...     C[i, j] = T.max(C[i, j], 0)
    """
    if not extents:
        raise TraceError("T.Parallel needs at least one extent", user_span())
    options = {
        "coalesced_width": coalesced_width,
        "loop_layout": loop_layout,
        "prefer_async": prefer_async,
        **(annotations or {}),
    }
    notes = {key: value for key, value in options.items() if value is not None}
    return _nest("T.Parallel", _Kind.PARALLEL, extents, {**notes, "tl.parallel": len(extents)})


def _nest(name: str, kind: T.ForKind, extents: Sequence[Any], notes: Mapping[str, Any]) -> LoopSpec:
    sizes = tuple(_positive(_bound(name, extent)) for extent in extents)
    starts = tuple(T.const(0, str(size.ty.dtype)) for size in sizes)
    return LoopSpec(name, kind, starts, sizes, annotations=notes, span=user_span())


def parallel(start: Any, stop: Any = None, *, annotations: Mapping[str, Any] | None = None) -> Any:
    """One :func:`Parallel` loop from ``start`` to ``stop``."""
    notes = {**(annotations or {}), "tl.parallel": 1}
    return _single("T.parallel", _Kind.PARALLEL, start, stop, notes)


def grid(*extents: Any) -> Any:
    """Nested serial loops, the last one innermost."""
    if not extents:
        raise TraceError("T.grid needs at least one extent", user_span())
    return _nest("T.grid", _Kind.SERIAL, extents, {})


def thread_binding(
    start: Any,
    stop: Any = None,
    thread: str | None = None,
    *,
    annotations: Mapping[str, Any] | None = None,
) -> Any:
    """A loop bound to a launch index such as ``"blockIdx.x"`` or ``"threadIdx.x"``."""
    if thread is None:
        if not isinstance(stop, str):
            raise TraceError("T.thread_binding needs the name of a launch index", user_span())
        stop, thread = None, stop
    return _single(
        "T.thread_binding", _Kind.THREAD_BINDING, start, stop, annotations, thread_tag=thread
    )


def Pipelined(
    start: Any,
    stop: Any = None,
    num_stages: int = 0,
    order: Sequence[int] | None = None,
    stage: Sequence[int] | None = None,
    sync: Sequence[Sequence[int]] | None = None,
    group: Sequence[Sequence[int]] | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Any:
    """A serial loop whose copies may run ahead of the computation. The result is the serial one.

    Parameters
    ----------
    start, stop : int or expression
        Bounds; with one argument the loop starts at 0.
    num_stages : int
        Buffers per tile; 0 or 1 means no overlap.
    order, stage : sequence of int, optional
        An explicit schedule, one entry per statement of the body.
    sync, group : optional
        Attached to the loop for passes that use them.

    Raises
    ------
    TraceError
        If ``num_stages`` is negative or ``order`` and ``stage`` differ in length.

    Examples
    --------
    >>> for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3): ...  # doctest: +SKIP
    """
    if not isinstance(num_stages, int) or num_stages < 0:
        raise TraceError(
            f"T.Pipelined: num_stages must be an int >= 0, found {num_stages!r}", user_span()
        )
    if order is not None and stage is not None and len(order) != len(stage):
        raise TraceError(
            f"T.Pipelined: order has {len(order)} entries and stage has {len(stage)}; both need "
            "one per statement of the body",
            user_span(),
        )
    notes: dict[str, Any] = {**(annotations or {}), "num_stages": num_stages}
    for key, value in (("order", order), ("stage", stage), ("sync", sync), ("group", group)):
        if value is not None and len(value):
            notes[f"tl_pipeline_{key}"] = list(value)
    return _single("T.Pipelined", _Kind.SERIAL, start, stop, notes)


def Persistent(domain: Sequence[Any], wave_size: Any, index: Any, group_size: Any = 8) -> Any:
    """A loop of one block over its share of a tile domain.

    Block ``index`` of ``wave_size`` blocks takes tiles ``index``, ``index + wave_size``, ... Tiles
    are numbered in groups of ``group_size`` along the last dimension, so that blocks running
    together share operands.

    Parameters
    ----------
    domain : sequence of int or expression
        Tiles per dimension.
    wave_size, index : int or expression
        Number of blocks, and the number of this block.
    group_size : int
        Width of a group.

    Yields
    ------
    tuple
        The tile's coordinates, one per dimension.
    """
    if len(domain) < 1:
        raise TraceError("T.Persistent needs a domain of at least one dimension", user_span())
    sizes = [_bound("T.Persistent", extent) for extent in domain]
    total = sizes[0]
    for size in sizes[1:]:
        total = total * size
    wave, block = _bound("T.Persistent", wave_size), _bound("T.Persistent", index)
    trips = (total - block + wave - 1) // wave
    spec = _single("T.Persistent", _Kind.SERIAL, 0, trips)
    width = _bound("T.Persistent", group_size)
    return LoopSpec(
        "T.Persistent",
        _Kind.SERIAL,
        spec.starts,
        spec.extents,
        decode=lambda turn: _tile_of(turn * wave + block, sizes, width),
        span=spec.span,
    )


def _tile_of(tile: ir.Expr, sizes: Sequence[ir.Expr], width: ir.Expr) -> tuple[ir.Expr, ...]:
    """Coordinates of a linear tile number, grouped along the last dimension."""
    *leading, last = sizes
    rows: ir.Expr = T.const(1, "int32")
    for size in leading:
        rows = rows * size
    per_group = rows * width
    group = tile // per_group
    first = group * width
    columns = T.min(last - first, width) if is_expr(last) else last
    inside = tile % per_group
    column = first + inside % columns
    row = inside // columns
    coordinates = [column]
    for size in reversed(leading):
        coordinates.insert(0, row % size)
        row = row // size
    return tuple(coordinates)


def loop_break() -> None:
    """Leave the innermost loop, like ``break``."""
    current = builder.current("T.loop_break")
    if current.innermost("for", "while") is None:
        raise TraceError("T.loop_break is only valid inside a run-time loop", user_span())
    current.emit(T.Break(user_span()))


Serial = serial
Unroll = unroll
Vectorized = vectorized
