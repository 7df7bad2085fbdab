"""Addresses: of buffers and elements, and raw ones passed as arguments or read from memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T

from tilelang.errors import UnsupportedError
from tilelang.interpreter.machine import Machine
from tilelang.interpreter.memory import Storage, View
from tilelang.interpreter.nodes import Fn
from tilelang.interpreter.numbers import Dtype
from tilelang.interpreter.rules import call_rule

__all__ = ["Pointer", "as_pointer", "bytes_at"]


@dataclass(frozen=True)
class Pointer:
    """A place in a storage, or (without one) an address of the process."""

    storage: Storage | None
    bits: int  # from the start of the storage

    def view(
        self, name: str, dtype: Dtype, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> View:
        """A buffer that starts here."""
        element = dtype.memory_bits * dtype.lanes
        if self.storage is not None:
            return View(name, dtype, shape, strides, self.bits // element, self.storage)
        reach = sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))
        nbytes = 0 if 0 in shape else ((reach + 1) * element + 7) // 8
        data = bytes_at(self.bits // 8, nbytes)
        return View(name, dtype, shape, strides, 0, Storage(name, "global", data, None, None))


def bytes_at(address: int, nbytes: int, owner: Any = None) -> np.ndarray:
    """The memory at ``address`` as an array that keeps ``owner`` alive."""
    if nbytes == 0:
        return np.zeros(0, np.uint8)
    memory: Any = (ctypes.c_uint8 * nbytes).from_address(address)
    memory.owner = owner
    return np.frombuffer(memory, np.uint8)


def as_pointer(value: Any) -> Pointer:
    """An address given as a Pointer or as an integer."""
    return value if isinstance(value, Pointer) else Pointer(None, int(value) * 8)


def _element(view: View, index: list[int]) -> Pointer:
    offset = view.offset + sum(i * s for i, s in zip(index, view.strides, strict=True))
    return Pointer(view.storage, offset * view.dtype.memory_bits * view.dtype.lanes)


@call_rule("tirx.buffer_data")
def _buffer_data(c: Any, expr: ir.Call) -> Fn:
    buffer = c.var(expr.args[0])
    return lambda m: _element(m.view(buffer), [0] * len(buffer.shape))


@call_rule("tirx.address_of", "tl.access_ptr")
def _address_of(c: Any, expr: ir.Call) -> Fn:
    target = expr.args[0]
    if isinstance(target, ir.Var) and isinstance(target.ty, T.BufferType):
        whole = c.var(target)
        return lambda m: _element(m.view(whole), [0] * len(whole.shape))
    if not isinstance(target, ir.TensorLoad):
        raise UnsupportedError(f"the address of {target} cannot be taken", expr.span)
    buffer, where, span = c.var(target.source), c.where(target), expr.span

    def run(m: Machine) -> Pointer:
        index = where(m)
        if any(np.ndim(i) for i in index):
            raise m.error(f"the address of {buffer.name}[...] differs between threads", span)
        return _element(m.view(buffer), index)

    return run


@call_rule("tirx.ptr_byte_offset", "tirx.handle_add_byte_offset")
def _byte_offset(c: Any, expr: ir.Call) -> Fn:
    base, offset = c.pointer(expr.args[0]), c.index(expr.args[1])

    def run(m: Machine) -> Pointer:
        start = base(m)
        return Pointer(start.storage, start.bits + 8 * int(offset(m)))

    return run


@call_rule("tirx.isnullptr")
def _is_null(c: Any, expr: ir.Call) -> Fn:
    pointer = c.pointer(expr.args[0])
    return lambda m: np.bool_(pointer(m) == Pointer(None, 0))
