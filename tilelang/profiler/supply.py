"""Inputs for a kernel, made from the descriptions of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from tvm import ir
from tvm import tirx as T

from tilelang.engine.param import KernelParam
from tilelang.errors import ArgumentValueError
from tilelang.ir.dtype import dtype as as_dtype
from tilelang.layout.index_expr import evaluate
from tilelang.utils.tensor import TensorSupplyType

__all__ = ["make_inputs", "resolve_shape", "symbol_names"]

# Small enough that sums of products stay exact in float16, and that int8 does not wrap at once.
_INTEGER_RANGE = (-2, 3)
_UNSIGNED_RANGE = (0, 4)


def make_inputs(
    params: Sequence[KernelParam],
    outputs: Sequence[int],
    supply: TensorSupplyType,
    device: torch.device | str,
    symbols: Mapping[str, int | float] | None = None,
) -> list[Any]:
    """One value for every parameter that a caller passes.

    Parameters
    ----------
    params : sequence of KernelParam
        All parameters, outputs included.
    outputs : sequence of int
        Positions of the parameters the kernel allocates.
    supply : TensorSupplyType
        ``Integer``: small integers, in float tensors too. ``Uniform``: floats in [-1, 1).
        ``Normal`` and ``Randn``: the standard normal distribution. ``Zero``, ``One``. ``Auto``:
        normal floats, 8-bit ones uniform. Integer tensors get small integers, bool tensors fair
        coins, unless ``Zero`` or ``One`` says otherwise.
    device : torch.device or str
    symbols : mapping, optional
        Values of symbolic sizes, and of scalar parameters, by name.

    Raises
    ------
    ArgumentValueError
        Naming every symbol or scalar without a value.
    """
    given = symbols or {}
    inputs = [param for i, param in enumerate(params) if i not in set(outputs)]
    _require_values(inputs, given)
    return [_make_one(param, supply, torch.device(device), given) for param in inputs]


def symbol_names(param: KernelParam) -> list[str]:
    """The names a parameter's value depends on: its symbolic sizes, or a scalar's own name."""
    if param.is_scalar():
        return [param.name]
    names: dict[str, None] = {}
    for extent in param.shape:
        if isinstance(extent, ir.Expr):
            names.update(dict.fromkeys(var.name for var in T.analysis.undefined_vars(extent)))
    return list(names)


def _require_values(params: Sequence[KernelParam], given: Mapping[str, Any]) -> None:
    wanted = dict.fromkeys(name for param in params for name in symbol_names(param))
    missing = [name for name in wanted if name not in given]
    if missing:
        raise ArgumentValueError(
            f"inputs need a value for {', '.join(missing)}: pass "
            f"dynamic_symbolic_constraints={{'{missing[0]}': ...}}, or input_tensors"
        )


def resolve_shape(param: KernelParam, symbols: Mapping[str, int | float]) -> tuple[int, ...]:
    """The extents of a tensor parameter, in elements, for given symbol values."""
    return tuple(
        _resolve(extent, symbols) if isinstance(extent, ir.Expr) else int(extent)
        for extent in param.shape
    )


def _resolve(extent: ir.Expr, symbols: Mapping[str, int | float]) -> int:
    values = {
        var: np.asarray(int(symbols[var.name]), dtype=np.int64)
        for var in T.analysis.undefined_vars(extent)
    }
    return int(evaluate(extent, values))


def _make_one(
    param: KernelParam,
    supply: TensorSupplyType,
    device: torch.device,
    symbols: Mapping[str, int | float],
) -> Any:
    if param.is_scalar():
        value = symbols[param.name]
        return float(value) if as_dtype(param.dtype).is_float else int(value)
    shape = resolve_shape(param, symbols)
    bits = as_dtype(param.dtype).bits
    if bits < 8 and not param.is_boolean():
        return _packed(param, shape, bits, supply, device)
    dtype = param.torch_dtype()
    if (lanes := param.torch_lanes()) > 1:
        shape = (*shape, lanes)
    if supply in (TensorSupplyType.Zero, TensorSupplyType.One):
        fill = float(supply is TensorSupplyType.One)
        return torch.full(shape, fill, device=device).to(dtype)
    if param.is_boolean():
        return torch.randint(0, 2, shape, device=device).to(torch.bool)
    if not dtype.is_floating_point or supply is TensorSupplyType.Integer:
        low, high = _UNSIGNED_RANGE if param.is_unsigned() else _INTEGER_RANGE
        return torch.randint(low, high, shape, device=device).to(dtype)
    uniform = supply is TensorSupplyType.Uniform
    if uniform or (supply is TensorSupplyType.Auto and param.is_float8()):
        return (torch.rand(shape, device=device) * 2 - 1).to(dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return torch.randn(shape, device=device, dtype=wide).to(dtype)


def _packed(
    param: KernelParam,
    shape: tuple[int, ...],
    bits: int,
    supply: TensorSupplyType,
    device: torch.device,
) -> torch.Tensor:
    """A tensor of bytes that hold ``8 // bits`` elements each along the last dimension."""
    per_byte = 8 // bits
    stored = (*shape[:-1], -(-shape[-1] // per_byte))
    if supply is TensorSupplyType.Zero:
        raw = torch.zeros(stored, dtype=torch.uint8, device=device)
    elif supply is TensorSupplyType.One:
        one = 0b0010 if param.is_float4() else 1  # 1.0 in e2m1 has exponent 1, mantissa 0
        byte = sum(one << (bits * i) for i in range(per_byte))
        raw = torch.full(stored, byte, dtype=torch.uint8, device=device)
    else:
        raw = torch.randint(0, 256, stored, dtype=torch.uint8, device=device)
    return raw.view(param.torch_dtype())
