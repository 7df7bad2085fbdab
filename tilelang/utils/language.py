"""Questions about buffers, regions and functions, for libraries written on top of the language."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tvm_ffi
from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceTypeError
from tilelang.ir.expr import is_buffer
from tilelang.ir.region import is_full_region as _covers_buffer
from tilelang.ir.region import region_buffer, region_extents, to_region

__all__ = [
    "array_reduce",
    "get_prim_func_name",
    "is_fragment",
    "is_full_region",
    "is_global",
    "is_local",
    "is_local_var",
    "is_shared",
    "is_shared_dynamic",
    "is_tensor_memory",
    "retrieve_shape",
    "retrieve_stride",
    "retrive_ptr_from_buffer_region",
    "side_effect",
    "to_buffer_region",
]

_EFFECT_PURE, _EFFECT_READ, _EFFECT_UPDATE = 1, 2, 3


def _scope(value: Any) -> str:
    """Storage scope of a buffer, or of the buffer an element or region lies in."""
    return str(region_buffer(to_region(value)).scope())


def is_global(buffer: Any) -> bool:
    """Whether a buffer, element or region lies in global memory."""
    return _scope(buffer) == "global"


def is_shared(buffer: Any, allow_dynamic: bool = True) -> bool:
    """Whether it lies in shared memory, static or (unless told otherwise) dynamic."""
    return _scope(buffer) == "shared" or (allow_dynamic and is_shared_dynamic(buffer))


def is_shared_dynamic(buffer: Any) -> bool:
    """Whether it lies in dynamic shared memory."""
    return _scope(buffer) == "shared.dyn"


def is_tensor_memory(buffer: Any) -> bool:
    """Whether it lies in Blackwell's tensor memory."""
    return _scope(buffer) == "shared.tmem"


def is_local(buffer: Any) -> bool:
    """Whether it is private to a thread."""
    return _scope(buffer) == "local"


def is_local_var(buffer: Any) -> bool:
    """Whether it is a scalar variable, as made by ``T.alloc_var``."""
    return _scope(buffer) == "local.var"


def is_fragment(buffer: Any) -> bool:
    """Whether it is a tile in the registers of a block's threads."""
    return _scope(buffer) == "local.fragment"


def array_reduce(array: Sequence[int]) -> int:
    """The product of extents; 1 for an empty shape."""
    return math.prod(array)


def to_buffer_region(
    obj: Any, access_type: str = "rw", extents: Sequence[Any] | None = None
) -> ir.TensorRegion:
    """Turn a buffer, an element or a slice into a region.

    Parameters
    ----------
    obj : buffer, element ``A[i, j]`` or region ``A[i:j, k]``
    access_type : {"r", "w", "rw"}
        How it will be used. Regions do not record it here; a wrong value is refused.
    extents : sequence, optional
        Extents of the tile that begins at an element.
    """
    _check_access(access_type)
    return to_region(obj, extents)


def _check_access(access_type: str) -> None:
    if access_type not in ("r", "w", "rw"):
        raise TraceTypeError(f"access_type must be 'r', 'w' or 'rw', found {access_type!r}")


def retrieve_shape(obj: Any) -> list[Any]:
    """Extents of a buffer or region; all ones for an element."""
    return list(obj.shape) if is_buffer(obj) else region_extents(to_region(obj))


def retrieve_stride(obj: Any) -> list[Any]:
    """Strides, in elements, of the buffer behind ``obj``: its own, or row-major ones."""
    buffer = region_buffer(to_region(obj))
    if buffer.strides:
        return list(buffer.strides)
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(list(buffer.shape)):
        strides.append(step)
        step = step * (int(extent.value) if isinstance(extent, T.IntImm) else extent)
    return strides[::-1]


def retrive_ptr_from_buffer_region(obj: Any, access_type: str = "r") -> ir.Expr:
    """A pointer expression to the first element of a buffer, element or region."""
    _check_access(access_type)
    region = to_region(obj)
    offset: Any = 0
    for interval, stride in zip(region.region, retrieve_stride(region), strict=True):
        offset = offset + interval.min * stride
    return region_buffer(region).access_ptr(access_type, offset=offset)


def is_full_region(region: ir.TensorRegion) -> bool:
    """Whether a region covers its whole buffer.

    Raises
    ------
    TraceTypeError
        If ``region`` is something else.
    """
    if not isinstance(region, ir.TensorRegion):
        raise TraceTypeError(f"expected a region A[i:j, k:l], found {type(region).__name__}")
    return _covers_buffer(region)


def get_prim_func_name(func: T.PrimFunc, default: str | None = None) -> str | None:
    """The ``global_symbol`` of a function, or ``default``."""
    name = (func.attrs or {}).get("global_symbol")
    return default if name is None else str(name)


def side_effect(expr: Any) -> int:
    """The strongest effect in an expression: 1 pure, 2 reads memory, 3 changes something.

    The values are those of TVM's ``CallEffectKind``; calls to unknown functions count as 3.
    """
    found = [_EFFECT_PURE]

    def on_call(call: ir.Call) -> None:
        kind = call.op.get_attr("TCallEffectKind") if isinstance(call.op, ir.Op) else None
        found.append(_EFFECT_UPDATE if kind is None else int(kind))

    def on_load(load: ir.TensorLoad) -> None:
        found.append(_EFFECT_READ)

    tvm_ffi.structural_walk(expr, [(ir.Call, on_call), (ir.TensorLoad, on_load)])
    return min(max(found), _EFFECT_UPDATE)
