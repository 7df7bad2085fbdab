"""``T.copy`` and ``T.async_copy``: move a tile between any two scopes, with a dtype cast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi.dataclasses import py_class

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.region import region_extents, squeezed_dims, to_region

__all__ = ["COPY", "CopyAttrs", "async_copy", "copy", "match_extents"]

_EVICTION = (None, "evict_normal", "evict_first", "evict_last")
_INSTRUCTIONS = (None, "tma", "cp_async", "sync")


@py_class("tl.op.CopyAttrs")
class CopyAttrs(TileAttrs):
    """Hints of a copy. They may change speed, never the result."""

    coalesced_width: int = 0
    disable_tma: bool = False
    eviction_policy: str = "evict_normal"
    prefer_instruction: str = ""
    is_async: bool = False
    loop_layout: Any = None


def _reference(ctx: Any, call: TileCall) -> None:
    src, dst = call.operand("src"), call.operand("dst")
    shape = [ctx.scalar(extent) for extent in region_extents(dst)]
    ctx.write(dst, ctx.cast(ctx.read(src).reshape(shape), ctx.dtype(dst)))


COPY = TileOp("copy", CopyAttrs, (Operand("src", "r"), Operand("dst", "w")), _reference)


def copy(
    src: Any,
    dst: Any,
    *,
    coalesced_width: int | None = None,
    disable_tma: bool = False,
    eviction_policy: str | None = None,
    prefer_instruction: str | None = None,
    annotations: Mapping[str, Any] | None = None,
    loop_layout: Any = None,
) -> None:
    """Copy a tile, casting to the destination's dtype.

    Parameters
    ----------
    src, dst : buffer, element or slice
        Of any scope. An element ``A[i, j]`` is the head address of a tile and takes its extents
        from the other side, aligned to the last dimensions. Dimensions of extent 1 are free, so
        ``Q[b, 0:64, h, :]`` fits a ``(64, D)`` tile. Reading outside a tensor gives its safe value
        (default 0); writing outside is dropped.
    coalesced_width : int, optional
        Elements a thread moves at once, a hint.
    disable_tma, eviction_policy, prefer_instruction, loop_layout
        Hints for GPUs; they never change the result.
    annotations : mapping, optional
        The same options by name; they win over the arguments.

    Raises
    ------
    TraceError
        If the extents cannot be matched or an option is unknown.

    Examples
    --------
    >>> T.copy(A[by * 64, k * 32], A_shared)  # doctest: +SKIP
    """
    options: dict[str, Any] = {
        "coalesced_width": coalesced_width,
        "disable_tma": disable_tma,
        "eviction_policy": eviction_policy,
        "prefer_instruction": prefer_instruction,
        "loop_layout": loop_layout,
    }
    _merge(options, annotations)
    if isinstance(src, ir.TensorLoad) and isinstance(dst, ir.TensorLoad) and not annotations:
        value = src if dtype_of(src) == dtype_of(dst) else src.astype(dtype_of(dst))
        span = builder.user_span()
        builder.emit(T.BufferStore(dst.source, value, list(dst.indices), span))
        return
    _emit(src, dst, options, is_async=False)


def async_copy(
    src: Any,
    dst: Any,
    *,
    coalesced_width: int | None = None,
    annotations: Mapping[str, Any] | None = None,
    loop_layout: Any = None,
) -> None:
    """Start copying a tile from global to shared memory and commit it, without waiting.

    The data may be read after ``T.ptx_wait_group``. Where a backend has no asynchronous copy the
    data are there at once.

    Raises
    ------
    TraceError
        If ``src`` is not global or ``dst`` is not shared.
    """
    options: dict[str, Any] = {"coalesced_width": coalesced_width, "loop_layout": loop_layout}
    _merge(options, annotations)
    source, target = to_region(src, [], "src").source, to_region(dst, [], "dst").source
    if source.scope() != "global" or not target.scope().startswith("shared"):
        raise TraceError(
            "T.async_copy moves global to shared memory; found "
            f"{source.name} in scope {source.scope()} and {target.name} in scope {target.scope()}. "
            "Use T.copy for other scopes",
            builder.user_span(),
        )
    _emit(src, dst, options, is_async=True)


def _merge(options: dict[str, Any], annotations: Mapping[str, Any] | None) -> None:
    for key, value in (annotations or {}).items():
        if key not in options:
            known = ", ".join(sorted(options))
            raise TraceError(
                f"T.copy: unknown annotation {key!r}; known: {known}", builder.user_span()
            )
        options[key] = value
    for key, allowed in (("eviction_policy", _EVICTION), ("prefer_instruction", _INSTRUCTIONS)):
        if options.get(key) not in allowed:
            raise TraceError(
                f"T.copy: {key}={options[key]!r}; expected one of {[a for a in allowed if a]}",
                builder.user_span(),
            )


def _emit(src: Any, dst: Any, options: Mapping[str, Any], is_async: bool) -> None:
    source, target = match_extents("T.copy", src, dst)
    attrs = {key: value for key, value in options.items() if value is not None}
    COPY.emit({**attrs, "is_async": is_async}, src=source, dst=target)


def match_extents(what: str, src: Any, dst: Any) -> tuple[ir.TensorRegion, ir.TensorRegion]:
    """Turn the two sides of a transfer into regions of equal extents (dimensions of 1 are free).

    Raises
    ------
    TraceError
        If neither side states extents or the non-unit extents differ.
    """
    span = builder.user_span()
    src_given, dst_given = _has_extents(src), _has_extents(dst)
    if not src_given and not dst_given:
        raise TraceError(
            f"{what}: neither side says how large the tile is; pass a buffer or a slice such as "
            "A[i:i + 64, j:j + 32] on one side",
            span,
        )
    if src_given:
        source = to_region(src, what=f"{what}: src")
        target = to_region(dst, _fit(source, dst), f"{what}: dst")
    else:
        target = to_region(dst, what=f"{what}: dst")
        source = to_region(src, _fit(target, src), f"{what}: src")
    left = [region_extents(source)[d] for d in squeezed_dims(source)]
    right = [region_extents(target)[d] for d in squeezed_dims(target)]
    agree = len(left) == len(right) and all(
        const_int(a) is None or const_int(b) is None or const_int(a) == const_int(b)
        for a, b in zip(left, right, strict=True)
    )
    if not agree:
        raise TraceError(
            f"{what}: the extents differ: {_show('src', source)}, {_show('dst', target)}. Slice "
            "the "
            "larger side, or pass only its start index",
            span,
        )
    return source, target


def _has_extents(value: Any) -> bool:
    return is_buffer(value) or isinstance(value, ir.TensorRegion)


def _fit(region: ir.TensorRegion, other: Any) -> list[ir.Expr]:
    """Extents of ``region`` for a head address of lower or equal rank: leading units dropped."""
    extents = region_extents(region)
    if isinstance(other, ir.TensorLoad):
        rank = len(other.indices)
        while len(extents) > rank:
            if const_int(extents[0]) == 1:
                extents = extents[1:]
            else:
                extents = [extents[d] for d in squeezed_dims(region)]
                break
    return extents


def _show(side: str, region: ir.TensorRegion) -> str:
    extents = ", ".join(str(extent) for extent in region_extents(region))
    return f"{side} {region.source.name}({extents})"
