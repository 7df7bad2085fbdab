"""``T.im2col``: gather the tile of an unfolded NHWC image for a convolution as a GEMM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm_ffi.dataclasses import py_class

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.expr import convert
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.region import region_extents, to_region

__all__ = ["IM2COL", "Im2colAttrs", "im2col"]


@py_class("tl.op.Im2colAttrs")
class Im2colAttrs(TileAttrs):
    """Geometry of the convolution, equal in both image dimensions."""

    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    pad: int = 0


def _reference(ctx: Any, call: TileCall) -> None:
    attrs, col = call.attrs, call.operand("col")
    image = ctx.read(call.operand("img"))
    n, height, width, channels = image.shape
    rows, cols = (int(ctx.scalar(extent)) for extent in region_extents(col)[-2:])
    span = attrs.dilation * (attrs.kernel - 1) + 1
    out_h = (height + 2 * attrs.pad - span) // attrs.stride + 1
    out_w = (width + 2 * attrs.pad - span) // attrs.stride + 1
    m = int(ctx.scalar(call.operand("nhw_step"))) * rows + np.arange(rows)[:, None]
    k = int(ctx.scalar(call.operand("c_step"))) * cols + np.arange(cols)[None, :]
    y = (
        m // out_w % out_h * attrs.stride
        + k // channels // attrs.kernel * attrs.dilation
        - attrs.pad
    )
    x = m % out_w * attrs.stride + k // channels % attrs.kernel * attrs.dilation - attrs.pad
    batch, kernel_size = m // (out_h * out_w), attrs.kernel**2 * channels
    inside = (batch < n) & (k < kernel_size) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    picked = image[
        np.where(inside, batch, 0), np.where(inside, y, 0), np.where(inside, x, 0), k % channels
    ]
    shape = [ctx.scalar(extent) for extent in region_extents(col)]
    values = np.where(inside, picked, np.zeros((), image.dtype))
    ctx.write(col, ctx.cast(values, ctx.dtype(col)).reshape(shape))


IM2COL = TileOp(
    "im2col",
    Im2colAttrs,
    (
        Operand("img", "r"),
        Operand("col", "w"),
        Operand("nhw_step", "r", kind="expr"),
        Operand("c_step", "r", kind="expr"),
    ),
    _reference,
)


def im2col(
    img: Any,
    col: Any,
    nhw_step: Any,
    c_step: Any,
    kernel: int,
    stride: int,
    dilation: int,
    pad: int,
    eviction_policy: str | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Fill tile ``col`` with block (``nhw_step``, ``c_step``) of the unfolded image.

    Row ``r`` of the unfolded matrix is output pixel ``(n, oh, ow)`` in row-major order, column
    ``c`` is ``(kh, kw, channel)``; outside the image the value is 0.

    Parameters
    ----------
    img : buffer, (N, H, W, C)
    col : buffer or slice, (block_rows, block_cols)
    nhw_step, c_step : int expression
        Which block of rows and columns.
    kernel, stride, dilation, pad : int
        Equal in both image dimensions.

    Raises
    ------
    TraceError
        If the ranks or the geometry are not valid.
    """
    del eviction_policy, annotations
    span = builder.user_span()
    image, tile = to_region(img, what="T.im2col: img"), to_region(col, what="T.im2col: col")
    if len(image.region) != 4 or len(tile.region) < 2:
        raise TraceError("T.im2col: img must be (N, H, W, C) and col a matrix tile", span)
    geometry = {"kernel": kernel, "stride": stride, "dilation": dilation, "pad": pad}
    for name, value in geometry.items():
        if not isinstance(value, int) or value < (0 if name == "pad" else 1):
            raise TraceError(f"T.im2col: {name} must be a positive constant, found {value}", span)
    IM2COL.emit(geometry, img=image, col=tile, nhw_step=convert(nhw_step), c_step=convert(c_step))
