"""The state of a running program: variables, buffers, the current domain and its active points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import ir

from tilelang.errors import TileLangError
from tilelang.interpreter.conflicts import TouchLog
from tilelang.interpreter.domain import Divergent, Domain, Mask
from tilelang.interpreter.memory import Storage, View

__all__ = ["InterpreterError", "Jumps", "Machine", "Options", "is_per_thread"]


class InterpreterError(TileLangError, RuntimeError):
    """A program did something undefined while it was interpreted."""


@dataclass(frozen=True)
class Options:
    """What the interpreter checks and how it orders what has no order.

    Parameters
    ----------
    check_initialized : bool
        Reading an element that was never written is an error.
    check_conflicts : bool
        Parallel iterations (or threads, in one statement) that touch one element with a write are
        an error.
    block_order : {"forward", "reverse", "random"}
        Order of the blocks of a launch; a right program gives the same result for each.
    seed : int
        For the random order.
    warp_size : int
        Threads in a warp, for shuffles and votes.
    externs : mapping
        Python functions that stand for C functions named in ``T.call_extern``.
    break_at : tuple of (str, int) or None
        File (or the end of its name) and line to stop at; see :mod:`tilelang.interpreter.debug`.
    on_break : callable or None
    """

    check_initialized: bool = True
    check_conflicts: bool = True
    block_order: str = "forward"
    seed: int = 0
    warp_size: int = 32
    externs: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    break_at: tuple[tuple[str, int], ...] = ()
    on_break: Any = None


@dataclass
class Jumps:
    """Points that left the body of a loop by ``break`` or ``continue``."""

    broken: Mask = field(default=np.False_)
    continued: Mask = field(default=np.False_)


def is_per_thread(scope: str) -> bool:
    """Whether every thread has its own copy of a buffer in ``scope``."""
    return scope in ("local", "local.var")


class Machine:
    """Runs one function.

    ``active`` are the points of ``domain`` that execute the current statement; it shrinks in
    branches and when points leave a loop.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.domain = Domain("block")
        self.active: Mask = np.True_
        self.span: ir.Span | None = None
        self.jumps = Jumps()
        self.env: dict[ir.Var, tuple[Any, Domain]] = {}
        self.views: dict[ir.Var, View] = {}
        self.block: tuple[int, ...] = ()
        self.returned: Mask = np.False_
        self.touched: dict[Storage, TouchLog] = {}
        self._private: dict[Storage, tuple[Storage, dict[View, View]]] = {}

    def error(self, message: str, span: ir.Span | None = None) -> InterpreterError:
        """An error at ``span`` (default: the current statement), with the block it happened in."""
        where = f" (in block {self.block})" if self.block else ""
        return InterpreterError(message + where, span or self.span)

    def assign(self, var: ir.Var, value: Any) -> None:
        """Bind a variable at the current domain."""
        self.env[var] = (value, self.domain)

    def read(self, var: ir.Var, lanes: int = 0) -> Any:
        """The value of a variable as seen from the current domain."""
        found = self.env.get(var)
        if found is None:
            raise self.error(f"variable {var.name} has no value here")
        value, home = found
        if home is self.domain or np.ndim(value) == lanes:
            return value
        try:
            return self.domain.seen(value, home, lanes)
        except Divergent:
            raise self.error(
                f"{var.name} differs between threads, but the statement is run once by all of them"
            ) from None

    def view(self, buffer: ir.Var) -> View:
        """The memory of a buffer."""
        found = self.views.get(buffer)
        if found is None:
            raise self.error(f"buffer {buffer.name} is used before it is allocated, or is None")
        return found

    def leave(self) -> None:
        """The active threads are done with the kernel."""
        self.returned = self.returned | self.active
        self.active = np.False_

    @contextmanager
    def within(self, domain: Domain, active: Mask = np.True_) -> Iterator[None]:
        """Run statements over another domain."""
        saved = self.domain, self.active, self.jumps
        self.domain, self.active, self.jumps = domain, active, Jumps()
        try:
            yield
        finally:
            self.domain, self.active, self.jumps = saved

    @contextmanager
    def masked(self, condition: Mask) -> Iterator[None]:
        """Evaluate expressions only where ``condition`` holds."""
        saved = self.active
        self.active = saved & condition
        try:
            yield
        finally:
            self.active = saved

    @contextmanager
    def parallel(self, domain: Domain, logs: Mapping[Storage, TouchLog]) -> Iterator[None]:
        """Run a nest, recording accesses in ``logs``; merges private copies at the end."""
        saved = self.touched, self._private
        self.touched = {**saved[0], **logs}
        self._private = {}
        try:
            with self.within(domain):
                yield
            for base, (private, _) in self._private.items():
                self._merge(base, private, domain)
        finally:
            self.touched, self._private = saved

    def place(self, view: View, uniform_write: bool = False) -> tuple[View, tuple[Any, ...]]:
        """The view that the active points use, and the index of each point's own copy in it.

        A per-thread buffer of the threads (or, if all iterations write one element of it, of the
        block) is private to each iteration within a parallel nest.
        """
        home = view.storage.home
        if home is None or home is self.domain:
            return view, self.domain.grids if view.storage.lead else ()
        found = self._private.get(view.storage)
        nest = self._nest_below(home)
        if nest is not None and found is None and (uniform_write or home.kind == "threads"):
            found = self._private[view.storage] = (self._copy(view.storage, nest), {})
        if found is not None:
            view = found[1].setdefault(view, view.over(found[0]))
            home = view.storage.home
        if not view.storage.lead:
            return view, ()
        return view, tuple(self.domain.seen(grid, home) for grid in home.grids)

    def _nest_below(self, home: Domain) -> Domain | None:
        nests = [d for d in self.domain.path_from(home) if d.kind == "parallel"]
        return nests[-1] if nests else None

    def _copy(self, base: Storage, nest: Domain) -> Storage:
        """One copy of ``base`` for each point of ``nest``."""
        data, written = base.data, base.record
        if base.lead:
            lanes = np.broadcast_to(nest.entered, base.lead)
            data, copies = base.data[lanes], base.record[lanes]
            agreed = (data == data[0]).all(axis=0) & (copies == copies[0]).all(axis=0)
            data, written = data[0], np.where(agreed, copies[0], np.uint8(0))
        shape = (*nest.shape, base.data.shape[-1])
        private = Storage(
            base.name,
            base.scope,
            np.broadcast_to(data, shape).copy(),
            np.broadcast_to(written, shape).copy(),
            nest,
            base.note or "its value differs between threads or iterations",
        )
        private.origin = (data, written)
        return private

    @staticmethod
    def _merge(base: Storage, private: Storage, nest: Domain) -> None:
        """Give the bytes that iterations changed back: unknown where the iterations disagree."""
        size = base.data.shape[-1]
        data, written = private.data.reshape(-1, size), private.record.reshape(-1, size)
        if not len(data) or private.origin is None:
            return
        changed = (data != private.origin[0]).any(axis=0)
        changed |= (written != private.origin[1]).any(axis=0)
        agreed = (data == data[0]).all(axis=0) & (written == written[0]).all(axis=0)
        known = np.where(agreed, written[0], np.uint8(0))
        lanes: Any = np.broadcast_to(nest.entered, base.lead) if base.lead else ...
        base.data[lanes] = np.where(changed, data[0], base.data[lanes])
        base.record[lanes] = np.where(changed, known, base.record[lanes])
        base.note = "the iterations of a T.Parallel loop left different values in it"
