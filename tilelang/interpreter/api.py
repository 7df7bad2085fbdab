"""Running a tile program in the interpreter."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tvm import tirx as T

from tilelang.errors import ArgumentTypeError
from tilelang.interpreter.arguments import Signature
from tilelang.interpreter.machine import Machine, Options
from tilelang.interpreter.statements import Code

__all__ = ["as_kernel_function", "interpret"]

_RECURSION_LIMIT = 20_000
_OPTIONS = {field.name for field in dataclasses.fields(Options)}


def as_kernel_function(
    func: T.PrimFunc, out_idx: Sequence[int] | int | None = None, **options: Any
) -> Callable[..., Any]:
    """Make a callable that runs ``func`` in the interpreter.

    Parameters
    ----------
    func : PrimFunc
        A traced tile program.
    out_idx : int or sequence of int, optional
        Parameters that the call allocates and returns; default: the function's attribute
        ``tilelang_out_idx``.
    **options
        Fields of :class:`tilelang.interpreter.Options`.

    Returns
    -------
    callable
        Takes the parameters that are no outputs (or all parameters), tensors as torch tensors or
        numpy arrays; writes them in place; returns the new outputs (one tensor, or a list of
        several), or None.
    """
    settings = _settings(options)
    outputs = _output_positions(func, out_idx)
    code = Code(settings)
    with _numpy_as_hardware():
        signature = Signature(code, func, outputs)
        body = code.stmt(func.body)

    def call(*args: Any) -> Any:
        moved, devices = _to_host(args)
        with _numpy_as_hardware():
            m = Machine(settings)
            results = signature.bind(m, moved)
            body(m)
        _to_device(args, moved)
        results = [result.to(devices[0]) if devices else result for result in results]
        if not results:
            return None
        return results[0] if len(outputs) == 1 else results

    return call


def interpret(fn: Any, *args: Any, **options: Any) -> Any:
    """Run a kernel in the interpreter: every check on, no compilation.

    Parameters
    ----------
    fn : PrimFunc, ``@T.prim_func``, ``@tilelang.jit`` function or kernel
        A jit function is traced with ``args`` first.
    *args
        As for a call of the kernel. Tensors are torch tensors or numpy arrays and are written in
        place; outputs of the kernel are allocated and returned as torch tensors.
    break_at : int or str or sequence of these, optional
        A line number, or ``"file.py:12"``: stop before statements of that line.
    on_break : callable, optional
        Called with a :class:`tilelang.interpreter.BreakState` at each stop.
    **options
        Further fields of :class:`tilelang.interpreter.Options`; others go to the jit function.

    Returns
    -------
    torch.Tensor, list of torch.Tensor or None

    Raises
    ------
    InterpreterError
        If the program reads or writes out of bounds, reads what was never written, has
        conflicting parallel writes, or fails an assertion.
    UnsupportedError
        If it uses a construct that only GPUs and the emulator run.

    Examples
    --------
    >>> tilelang.interpret(kernel, a, b, break_at=12, on_break=lambda s: print(s.tiles["A_shared"]))
    ... # doctest: +SKIP
    """
    out_idx = options.pop("out_idx", None)
    own = {name: options.pop(name) for name in list(options) if name in _OPTIONS}
    func, values, traced_out = _resolve(fn, args, options)
    return as_kernel_function(func, out_idx if out_idx is not None else traced_out, **own)(*values)


@contextlib.contextmanager
def _numpy_as_hardware() -> Iterator[None]:
    """No warnings for overflow and NaN, and room for expressions nested deeper than Python's."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        sys.setrecursionlimit(limit)


def _settings(options: Mapping[str, Any]) -> Options:
    if options.get("break_at") and options.get("on_break") is None:
        raise ArgumentTypeError("break_at needs on_break, the function to call there")
    stops = options.get("break_at", ())
    stops = (stops,) if isinstance(stops, (int, str)) else tuple(stops or ())
    return Options(**{**options, "break_at": tuple(_stop(stop) for stop in stops)})


def _stop(stop: int | str | tuple[str, int]) -> tuple[str, int]:
    if isinstance(stop, tuple):
        return stop
    file, _, line = str(stop).rpartition(":")
    if not line.isdigit():
        raise ArgumentTypeError(f"break_at: expected a line or 'file.py:line', found {stop!r}")
    return file, int(line)


def _output_positions(func: T.PrimFunc, out_idx: Sequence[int] | int | None) -> list[int]:
    if out_idx is None:
        out_idx = [int(i) for i in (func.attrs or {}).get("tilelang_out_idx", [])]
    indices = [out_idx] if isinstance(out_idx, int) else list(out_idx)
    count = len(func.params)
    for index in indices:
        if not -count <= index < count:
            raise ArgumentTypeError(f"out_idx {index} is out of range for {count} parameters")
    return [index % count for index in indices]


def _to_host(args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Copies of tensors of other devices, and those devices."""
    moved, devices = [], []
    for arg in args:
        device = getattr(arg, "device", None)
        if getattr(device, "type", "cpu") not in ("cpu", "meta") and hasattr(arg, "cpu"):
            devices.append(device)
            arg = arg.cpu()
        moved.append(arg)
    return moved, devices


def _to_device(args: Sequence[Any], moved: Sequence[Any]) -> None:
    for arg, host in zip(args, moved, strict=True):
        if arg is not host:
            arg.copy_(host)


def _resolve(
    fn: Any, args: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[T.PrimFunc, Sequence[Any], Sequence[int] | int | None]:
    """The traced function, the arguments of the call, and the outputs the wrapper declares."""
    if getattr(fn, "mode", None) == "eager":
        program = fn.get_tir(*args, **keywords)
        return program, _runtime_arguments(fn.func, program, args, keywords), None
    program, out_idx = fn, None
    if not isinstance(fn, T.PrimFunc):  # a kernel, or a program under @tilelang.jit
        program = getattr(fn, "prim_func", None) or getattr(fn, "program", None)
        out_idx = getattr(fn, "out_idx", None)
    if not isinstance(program, T.PrimFunc):
        hint = ""
        if getattr(fn, "mode", None) == "lazy":
            hint = "; it makes kernels: pass the program, fn.get_tir(...), or the kernel, fn(...)"
        raise ArgumentTypeError(f"cannot interpret {fn!r}{hint}")
    if keywords:
        raise ArgumentTypeError(
            f"unknown interpreter option {sorted(keywords)[0]!r}; known: out_idx, "
            + ", ".join(sorted(_OPTIONS))
        )
    return program, args, out_idx


def _runtime_arguments(
    func: Callable[..., Any], program: T.PrimFunc, args: Sequence[Any], keywords: Mapping[str, Any]
) -> list[Any]:
    """Those arguments of an eager function that are parameters of its program."""
    signature = inspect.signature(func)
    known = {name: value for name, value in keywords.items() if name in signature.parameters}
    bound = signature.bind(*args, **known)
    bound.apply_defaults()
    outputs = _output_positions(program, None)
    inputs = [param for i, param in enumerate(program.params) if i not in outputs]
    return [bound.arguments[param.name] for param in inputs]
