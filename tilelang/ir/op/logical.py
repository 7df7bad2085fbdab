"""``T.any_of`` and ``T.all_of``: whether any or all elements of a tile are non-zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm_ffi.dataclasses import py_class

from tilelang.ir import builder
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.region import to_region

__all__ = ["LOGICAL", "LogicalAttrs", "all_of", "any_of"]


@py_class("tl.op.LogicalAttrs")
class LogicalAttrs(TileAttrs):
    """``kind`` is any or all."""

    kind: str = "any"


def _reference(ctx: Any, call: TileCall) -> None:
    values = ctx.read(call.operand("src")).astype(bool)
    result = values.any() if call.attrs.kind == "any" else values.all()
    ctx.write(call.operand("dst"), np.asarray(result).reshape(1))


LOGICAL = TileOp("logical", LogicalAttrs, (Operand("src", "r"), Operand("dst", "w")), _reference)


def _emit(kind: str, src: Any) -> ir.Expr:
    span = builder.user_span()
    result = T.decl_buffer(
        (1,), "bool", f"{kind}_of", scope="local.var", layout=None, data_alignment=1, span=span
    )
    builder.emit(T.AllocBuffer(result, span=span))
    LOGICAL.emit({"kind": kind}, src=to_region(src, what=f"T.{kind}_of"), dst=to_region(result))
    return T.BufferLoad(result, [0], span)


def any_of(src: Any) -> ir.Expr:
    """Whether any element of a buffer or slice is non-zero, as a bool for the whole block."""
    return _emit("any", src)


def all_of(src: Any) -> ir.Expr:
    """Whether all elements of a buffer or slice are non-zero, as a bool for the whole block."""
    return _emit("all", src)
