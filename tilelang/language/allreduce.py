"""Reductions over the threads of a block in TVM's style: ``T.tvm_thread_allreduce``.

The combiner is named by ``T.attr(T.comm_reducer(...), "reduce_scope", ...)``. The reduction is
written out with an array in shared memory and two barriers, so that every execution of thread
programs has it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder, intrin
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, cast
from tilelang.language.allocate import alloc_local, alloc_shared

__all__ = ["CommReducer", "attr", "comm_reducer", "tvm_thread_allreduce"]


@dataclass(frozen=True)
class CommReducer:
    """A commutative combiner of tuples of values, and its identity."""

    combine: Callable[..., Any]
    identity: tuple[Any, ...]

    def __call__(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, ...]:
        """Combine two tuples."""
        result = self.combine(*left, *right)
        return tuple(result) if isinstance(result, (list, tuple)) else (result,)


def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> CommReducer:
    """A combiner for ``T.tvm_thread_allreduce``.

    Parameters
    ----------
    combiner : callable
        Takes as many left values as ``identity`` has, then as many right values.
    identity : sequence of expression or number
        What leaves the other operand unchanged.

    Raises
    ------
    TraceTypeError
        If ``identity`` is no list of values.
    """
    if not isinstance(identity, (list, tuple)) or not identity:
        raise TraceTypeError(
            f"T.comm_reducer: the identity is a list of values, found {type(identity).__name__}",
            user_span(),
        )
    values = tuple(as_scalar(value, "T.comm_reducer") for value in identity)
    return CommReducer(combiner, values)


_active: weakref.WeakKeyDictionary[builder.Builder, list[CommReducer]] = weakref.WeakKeyDictionary()


class _Scope:
    """What ``T.attr`` returns: ``with`` ends the scope of the attribute with its body."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if kind is None:
            self._close()


def attr(node: Any, attr_key: str, value: Any) -> Any:
    """Put an attribute node around the statements that follow, or around the body of a ``with``."""
    span = user_span()
    active = builder.current("T.attr")
    if isinstance(node, CommReducer):
        reducers = _active.setdefault(active, [])
        reducers.append(node)
        return _Scope(lambda: reducers.remove(node))
    content = ir.StringImm(value) if isinstance(value, str) else as_scalar(value, "T.attr")
    return _Scope(active.wrap_rest(lambda body: T.AttrStmt(node, attr_key, content, body, span)))


def tvm_thread_allreduce(size: Any, *args: Any, dtype: Any = None) -> None:
    """Combine values over thread axes; every thread of the axes gets the result.

    Parameters
    ----------
    size : int
        How many values are reduced together.
    *args
        ``size`` values, a condition (where it is false a thread contributes the identity), ``size``
        elements that receive the results, then the thread indices that are reduced over.
    dtype : str
        Not read; published kernels pass ``"handle"``.

    Raises
    ------
    TraceError
        Outside of a kernel, or where no ``T.attr(reducer, "reduce_scope", ...)`` is open.
    TraceTypeError
        If the arguments do not have this form.
    """
    span = user_span()
    trace = builder.current("T.tvm_thread_allreduce")
    reducer, count = _reducer(trace, size), const_int(size)
    assert count is not None
    values = [as_scalar(value, "T.tvm_thread_allreduce") for value in args[:count]]
    condition, targets, axes = (
        args[count : count + 1],
        args[count + 1 : 2 * count + 1],
        args[2 * count + 1 :],
    )
    if len(targets) < count or not all(isinstance(t, ir.TensorLoad) for t in targets):
        raise TraceTypeError(
            f"T.tvm_thread_allreduce: expected {count} values, a condition, {count} elements for "
            "the results such as R[0], then thread indices",
            span,
        )
    launch = trace.kernel
    names = [str(var.name) for var in launch.threads]
    reduced = [k for k, var in enumerate(launch.threads) if any(var.same_as(a) for a in axes)]
    if len(reduced) != len(axes) or not axes:
        raise TraceTypeError(
            "T.tvm_thread_allreduce: what follows the results are thread indices of the launch "
            f"({', '.join(names)}), given by T.get_thread_binding",
            span,
        )
    _Reduction(trace, launch, reducer, reduced, span).run(values, condition[0], targets)


def _reducer(trace: builder.Builder, size: Any) -> CommReducer:
    open_reducers = _active.get(trace)
    if trace.kernel is None or not open_reducers:
        raise TraceError(
            "T.tvm_thread_allreduce needs its combiner: put it into "
            'with T.attr(T.comm_reducer(...), "reduce_scope", ...), in a kernel',
            user_span(),
        )
    reducer = open_reducers[-1]
    if const_int(size) != len(reducer.identity):
        raise TraceTypeError(
            f"T.tvm_thread_allreduce: the combiner works on {len(reducer.identity)} values, found "
            f"size {size}",
            user_span(),
        )
    return reducer


@dataclass(frozen=True)
class _Reduction:
    trace: builder.Builder
    launch: Any
    reducer: CommReducer
    reduced: list[int]
    span: ir.Span | None

    def run(self, values: list[ir.Expr], condition: Any, targets: Sequence[Any]) -> None:
        threads = self.launch.threads
        extents = [const_int(extent) or 1 for extent in self.launch.get_thread_extents()]
        dtypes = [dtype_of(target) for target in targets]
        shared = [alloc_shared((math.prod(extents),), dtype) for dtype in dtypes]
        total = [alloc_local((1,), dtype) for dtype in dtypes]
        identity = [cast(v, dtype) for v, dtype in zip(self.reducer.identity, dtypes, strict=True)]
        takes_part = cast(as_scalar(condition, "T.tvm_thread_allreduce"), "bool")
        here = self._place(threads, extents)
        for cell, value, nothing in zip(shared, values, identity, strict=True):
            value = cast(value, dtype_of(cell))
            self._store(cell, T.if_then_else(takes_part, value, nothing), here)
        for cell, nothing in zip(total, identity, strict=True):
            self._store(cell, nothing, 0)
        intrin.get("sync_threads").emit()

        axes = {k: T.Var(f"r{k}", "int32", self.span) for k in self.reduced}
        there = self._place([axes.get(k, var) for k, var in enumerate(threads)], extents)
        with self.trace.block() as step:
            left, right = [cell[0] for cell in total], [cell[there] for cell in shared]
            results = [
                self.trace.bind("combined", cast(result, dtype))
                for result, dtype in zip(self.reducer(left, right), dtypes, strict=True)
            ]
            for cell, result in zip(total, results, strict=True):
                self._store(cell, result, 0)
        body: Any = T.stmt_seq(*step)
        for k in reversed(self.reduced):
            body = T.For(axes[k], 0, extents[k], T.ForKind.SERIAL, body, span=self.span)
        self.trace.emit(body)
        intrin.get("sync_threads").emit()
        for target, cell in zip(targets, total, strict=True):
            stored = T.BufferStore(target.source, cell[0], list(target.indices), self.span)
            self.trace.emit(stored)

    def _store(self, cell: ir.Var, value: ir.Expr, index: Any) -> None:
        self.trace.emit(T.BufferStore(cell, value, [index], self.span))

    def _place(self, indices: Sequence[Any], extents: list[int]) -> Any:
        """The position of a thread in the shared array."""
        place, stride = indices[0], extents[0]
        for index, extent in zip(indices[1:], extents[1:], strict=True):
            if extent > 1:
                place = place + index * stride
            stride *= extent
        return place
