"""Requests for memory that is needed soon, spread over a long computation.

A tile that comes from a tensor costs its latency when it is copied. While one product runs, the
lines of the next tiles are brought to the second-level cache, a few a register block, so that the
copies find them there. A request never faults: the one beyond a tensor's end has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import DataType, ir
from tvm import tirx as T

from tilelang.cpu.op.loops import serial
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.region import region_extents, region_mins

__all__ = ["prefetch_share"]

_LINE = 64  # bytes
_READ, _SECOND_LEVEL, _DATA = 0, 2, 1  # operands of LLVM's prefetch


def prefetch_share(regions: Sequence[ir.TensorRegion], share: ir.Expr, shares: int) -> list[T.Stmt]:
    """Bring part number ``share`` of ``shares`` of every region to the second-level cache."""
    return [_share(region, share, shares) for region in regions]


def _share(region: ir.TensorRegion, share: ir.Expr, shares: int) -> T.Stmt:
    rows, cols = (const_int(extent) for extent in region_extents(region)[-2:])
    assert rows is not None and cols is not None, "only constant tiles are announced"
    step = _LINE * 8 // DataType(dtype_of(region)).bits
    lines_a_row = -(-cols // step)
    count = -(-rows * lines_a_row // shares)

    def request(n: Any) -> T.Stmt:
        line = share * count + n
        *lead, row, col = region_mins(region)
        at = [
            *lead,
            row + T.truncdiv(line, T.const(lines_a_row, "int32")),
            col + T.truncmod(line, T.const(lines_a_row, "int32")) * step,
        ]
        return _prefetch(T.BufferLoad(region.source, at))

    return serial(count, request, "n")


def _prefetch(element: ir.Expr) -> T.Stmt:
    pointer = ir.PointerType(ir.PrimType(dtype_of(element)), element.source.scope())
    address = ir.Call(ir.Op.get("tirx.address_of"), [element], ret_ty=pointer)
    flags = [T.const(flag, "int32") for flag in (_READ, _SECOND_LEVEL, _DATA)]
    return T.Evaluate(ir.Call(ir.Op.get("tirx.prefetch"), [address, *flags], ret_ty="void"))
