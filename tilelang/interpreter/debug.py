"""Looking inside: ``T.print``, ``T.device_assert`` and stops at a line of the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import ir

from tilelang.interpreter.machine import Machine, Options
from tilelang.interpreter.memory import View
from tilelang.interpreter.nodes import Fn
from tilelang.interpreter.rules import call_rule

__all__ = ["BreakState", "breakpoint_at", "contents"]


def contents(view: View) -> np.ndarray:
    """A copy of a whole buffer, one for each thread (or iteration) first where it has several."""
    everything = (slice(None),) * (len(view.storage.lead) + len(view.shape))
    return np.array(view.gather(everything))


class _Tiles(Mapping[str, np.ndarray]):
    def __init__(self, views: dict[str, View]) -> None:
        self._views = views

    def __getitem__(self, name: str) -> np.ndarray:
        return contents(self._views[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)


@dataclass(frozen=True)
class BreakState:
    """What a stop at a source line shows.

    Attributes
    ----------
    file, line : str, int
    block : tuple of int
        Index of the block that runs.
    active : array of bool
        Which threads or iterations execute the statement.
    tiles : mapping of str to array
        Every buffer by name, copied when it is looked up; look during the stop.
    variables : dict of str to number or array
        Loop variables, block and thread indices and temporaries by name.
    """

    file: str
    line: int
    block: tuple[int, ...]
    active: np.ndarray
    tiles: Mapping[str, np.ndarray]
    variables: dict[str, Any]


def breakpoint_at(options: Options, span: ir.Span) -> Callable[[Machine], None] | None:
    """The function that stops before a statement at ``span``, if one is asked for there."""
    file, line = span.source_name.name, int(span.line)
    if not any(line == n and file.endswith(name) for name, n in options.break_at):
        return None

    def stop(m: Machine) -> None:
        shape = m.domain.shape
        options.on_break(
            BreakState(
                file,
                line,
                m.block,
                np.array(np.broadcast_to(m.active, shape)),
                _Tiles({view.name: view for view in m.views.values()}),
                {var.name: value for var, (value, _) in m.env.items()},
            )
        )

    return stop


def _region(c: Any, region: ir.TensorRegion) -> Callable[[Machine], np.ndarray]:
    """The part of a buffer in ``region``, of all threads, written or not."""
    bounds = [(c.index(r.min), c.index(r.extent)) for r in region.region]
    buffer = c.var(region.source)

    def read(m: Machine) -> np.ndarray:
        with m.within(m.domain.nest((), m.active)):
            parts = tuple(slice(int(a(m)), int(a(m)) + int(n(m))) for a, n in bounds)
        view = m.view(buffer)
        return np.array(view.gather((slice(None),) * len(view.storage.lead) + parts))

    return read


@call_rule("tl.print")
def _print(c: Any, expr: ir.Call) -> Fn:
    """Print the message and a value or tile, with the line and the block it comes from.

    A value that differs between threads or iterations is printed for all of them.
    """
    text, span = str(expr.args[0].value), expr.span
    label, read = "", None
    if len(expr.args) > 1:
        value = expr.args[1]
        tile = isinstance(value, ir.TensorRegion)
        read = _region(c, value) if tile else c.value(value)
        label = f"{value.source.name} = " if tile else ""
    place = f"{span.source_name.name}:{span.line}: " if span is not None else ""

    def run(m: Machine) -> None:
        shown = "" if read is None else f"{label}{read(m)}"
        block = f"[block {m.block}] " if m.block else ""
        message = f"{text}: " if text and shown else text
        print(f"{block}{place}{message}{shown}", flush=True)  # noqa: T201  (what T.print does)

    return run


@call_rule("tl.device_assert")
def _device_assert(c: Any, expr: ir.Call) -> Fn:
    condition, span = c.condition(expr.args[0]), expr.span
    text = str(expr.args[1].value) if len(expr.args) > 1 else ""

    def run(m: Machine) -> None:
        failing = np.broadcast_to(m.active & ~np.asarray(condition(m)), m.domain.shape)
        if failing.any():
            where = f" at {tuple(np.argwhere(failing)[0].tolist())}" if m.domain.shape else ""
            raise m.error(f"device assertion failed{where}: {text or expr.args[0]}", span)

    return run
