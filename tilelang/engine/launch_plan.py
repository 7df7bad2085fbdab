"""How a compiled function is called and launched, as data.

A :class:`LaunchPlan` is made once, while lowering, and read by every execution adapter: it lists
the parameters with their symbolic shapes, the host assertions, the workspaces, the kernels with
their grids and arguments, and what is returned. Nothing is ever recovered from generated source.

The JSON form (:meth:`LaunchPlan.to_json`) is what the native launcher reads and what the kernel
cache stores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import LaunchError
from .expr_program import IntExpr, check_expr, expr_from_json, expr_to_json

__all__ = ["ArgRef", "Check", "KernelLaunch", "LaunchPlan", "Param", "Workspace"]

_VERSION = 2
_KINDS = ("tensor", "scalar", "pointer")
_ACCESSES = ("none", "r", "w", "rw")
_ROLES = ("in", "out")
_SOURCES = ("param", "symbol", "workspace")


@dataclass(frozen=True)
class Param:
    """One parameter of the function, in declaration order.

    Parameters
    ----------
    name : str
        The user's name for it; used in messages.
    kind : {"tensor", "scalar", "pointer"}
        A scalar arrives as a Python number, a pointer as an address.
    dtype : str
        Element dtype, e.g. ``"float32"`` or ``"int4"``.
    device : str
        Where a tensor must live: ``"cpu"``, ``"cuda"``, ...
    shape : tuple of IntExpr
        Extents in elements of ``dtype``, also for sub-byte dtypes.
    strides : tuple of IntExpr, optional
        Strides in elements; None demands compact row-major.
    access : {"none", "r", "w", "rw"}
        What the kernels do with it. A tensor with access ``"none"`` may be passed as ``None``.
    role : {"in", "out"}
        An ``"out"`` tensor is allocated by the launcher instead of being passed.
    symbol : int, optional
        Integer scalars only: the symbol whose value this argument is.
    align : int, optional
        Tensors only: the power of two, in bytes, that the address must be a multiple of; by
        default what one element needs, which is nothing on a CPU.
    """

    name: str
    kind: Literal["tensor", "scalar", "pointer"]
    dtype: str
    device: str = "cpu"
    shape: tuple[IntExpr, ...] = ()
    strides: tuple[IntExpr, ...] | None = None
    access: Literal["none", "r", "w", "rw"] = "r"
    role: Literal["in", "out"] = "in"
    symbol: int | None = None
    align: int | None = None


@dataclass(frozen=True)
class Check:
    """A host assertion: ``cond`` must be non-zero, otherwise the call fails with ``message``."""

    cond: IntExpr
    message: str


@dataclass(frozen=True)
class Workspace:
    """Device memory that lives for one call, ``shape`` elements of ``dtype``."""

    dtype: str
    shape: tuple[IntExpr, ...]


@dataclass(frozen=True)
class ArgRef:
    """Where one kernel argument comes from: parameter, symbol or workspace number ``index``."""

    source: Literal["param", "symbol", "workspace"]
    index: int


@dataclass(frozen=True)
class KernelLaunch:
    """One launch: entry name, grid and block extents (x, y, z) and arguments in slot order.

    ``scratch_bytes`` is host memory per worker thread (CPU backends), ``dyn_smem`` dynamic shared
    memory in bytes per block (GPU backends). Flag ``"serial"`` keeps the blocks on one thread of
    a CPU. Flags of CUDA: ``"cooperative"`` runs all blocks at once, with ``"pdl"`` (programmatic
    dependent launch) the kernel may start before the one ahead of it in the stream has ended.
    """

    entry: str
    grid: tuple[IntExpr, IntExpr, IntExpr] = (1, 1, 1)
    block: tuple[IntExpr, IntExpr, IntExpr] = (1, 1, 1)
    args: tuple[ArgRef, ...] = ()
    scratch_bytes: int = 0
    dyn_smem: IntExpr = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaunchPlan:
    """Everything a launcher needs; validated on construction.

    Parameters
    ----------
    name : str
        Function name, used in messages.
    symbols : tuple of str
        Names of the symbols. They are bound at every call from tensor extents, strides and
        integer scalars; an extent linear in one unknown symbol is solved for it.
    params, checks, workspaces, kernels
        See the classes of this module.
    returns : tuple of int
        Indices of the ``"out"`` parameters the call returns.
    returns_list : bool
        Return a list even for a single output.

    Raises
    ------
    LaunchError
        If a field is malformed or an index is out of range.
    """

    name: str
    symbols: tuple[str, ...] = ()
    params: tuple[Param, ...] = ()
    checks: tuple[Check, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    kernels: tuple[KernelLaunch, ...] = ()
    returns: tuple[int, ...] = ()
    returns_list: bool = False

    def __post_init__(self) -> None:
        try:
            _validate(self)
        except ValueError as e:
            raise LaunchError(f"invalid launch plan of '{self.name}': {e}") from None

    def inputs(self) -> tuple[Param, ...]:
        """The parameters a caller passes, in order."""
        return tuple(p for p in self.params if p.role == "in")

    def to_json(self) -> str:
        """Serialise; deterministic, so it may take part in cache keys."""
        return json.dumps(_to_dict(self), separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> LaunchPlan:
        """Rebuild a plan written by :meth:`to_json`; raises ``LaunchError`` on malformed text."""
        try:
            return _from_dict(json.loads(text))
        except LaunchError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise LaunchError(f"malformed launch plan: {type(e).__name__}: {e}") from None


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _validate(plan: LaunchPlan) -> None:
    count = len(plan.symbols)
    _require(bool(plan.name), "the name is empty")
    for param in plan.params:
        _validate_param(param, count)
    for check in plan.checks:
        check_expr(check.cond, count)
    for workspace in plan.workspaces:
        for extent in workspace.shape:
            check_expr(extent, count)
    limits = {"param": len(plan.params), "symbol": count, "workspace": len(plan.workspaces)}
    for kernel in plan.kernels:
        _validate_kernel(kernel, count, limits)
    for index in plan.returns:
        known = 0 <= index < len(plan.params) and plan.params[index].role == "out"
        _require(known, f"returns names parameter {index}, which is not an output")
    _require(plan.returns_list or len(plan.returns) <= 1, "several returns need returns_list")


def _validate_param(param: Param, num_symbols: int) -> None:
    what = f"parameter '{param.name}'"
    _require(param.kind in _KINDS, f"{what}: unknown kind {param.kind!r}")
    _require(param.access in _ACCESSES, f"{what}: unknown access {param.access!r}")
    _require(param.role in _ROLES, f"{what}: unknown role {param.role!r}")
    _require(bool(param.dtype) and bool(param.name), f"{what}: name and dtype are required")
    tensor = param.kind == "tensor"
    _require(tensor or param.role == "in", f"{what}: only tensors can be outputs")
    _require(tensor or not param.shape, f"{what}: only tensors have a shape")
    for expr in (*param.shape, *(param.strides or ())):
        check_expr(expr, num_symbols)
    if param.strides is not None:
        _require(
            len(param.strides) == len(param.shape), f"{what}: strides and shape differ in rank"
        )
        _require(param.role == "in", f"{what}: outputs are always compact")
    if param.symbol is not None:
        _require(param.kind == "scalar", f"{what}: only scalars carry a symbol")
        check_in_range = 0 <= param.symbol < num_symbols
        _require(check_in_range, f"{what}: symbol {param.symbol} is out of range")
    if param.align is not None:
        _require(tensor, f"{what}: only tensors have an alignment")
        power = param.align > 0 and param.align & (param.align - 1) == 0
        _require(power, f"{what}: alignment {param.align} is no power of two")


def _validate_kernel(kernel: KernelLaunch, num_symbols: int, limits: Mapping[str, int]) -> None:
    what = f"kernel '{kernel.entry}'"
    _require(bool(kernel.entry), "a kernel has no entry name")
    for extents in (kernel.grid, kernel.block, kernel.cluster):
        _require(len(extents) == 3, f"{what}: grid, block and cluster have three extents")
    for expr in (*kernel.grid, *kernel.block, kernel.dyn_smem):
        check_expr(expr, num_symbols)
    _require(kernel.scratch_bytes >= 0, f"{what}: negative scratch_bytes")
    for arg in kernel.args:
        _require(arg.source in _SOURCES, f"{what}: unknown argument source {arg.source!r}")
        _require(0 <= arg.index < limits[arg.source], f"{what}: {arg} is out of range")


def _exprs_to_json(exprs: Sequence[IntExpr]) -> list[Any]:
    return [expr_to_json(e) for e in exprs]


def _exprs_from_json(values: Sequence[Any]) -> tuple[IntExpr, ...]:
    return tuple(expr_from_json(v) for v in values)


def _to_dict(plan: LaunchPlan) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "name": plan.name,
        "symbols": list(plan.symbols),
        "params": [_param_to_dict(p) for p in plan.params],
        "checks": [{"cond": expr_to_json(c.cond), "message": c.message} for c in plan.checks],
        "workspaces": [
            {"dtype": w.dtype, "shape": _exprs_to_json(w.shape)} for w in plan.workspaces
        ],
        "kernels": [_kernel_to_dict(k) for k in plan.kernels],
        "returns": list(plan.returns),
        "returns_list": plan.returns_list,
    }


def _param_to_dict(param: Param) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": param.name,
        "kind": param.kind,
        "dtype": param.dtype,
        "device": param.device,
        "shape": _exprs_to_json(param.shape),
        "strides": None if param.strides is None else _exprs_to_json(param.strides),
        "access": param.access,
        "role": param.role,
    }
    if param.symbol is not None:
        out["symbol"] = param.symbol
    if param.align is not None:
        out["align"] = param.align
    return out


def _kernel_to_dict(kernel: KernelLaunch) -> dict[str, Any]:
    return {
        "entry": kernel.entry,
        "grid": _exprs_to_json(kernel.grid),
        "block": _exprs_to_json(kernel.block),
        "args": [{a.source: a.index} for a in kernel.args],
        "scratch_bytes": kernel.scratch_bytes,
        "dyn_smem": expr_to_json(kernel.dyn_smem),
        "cluster": list(kernel.cluster),
        "flags": list(kernel.flags),
    }


def _from_dict(data: Mapping[str, Any]) -> LaunchPlan:
    _require(data["version"] == _VERSION, f"version {data['version']} is not {_VERSION}")
    return LaunchPlan(
        name=data["name"],
        symbols=tuple(data["symbols"]),
        params=tuple(_param_from_dict(p) for p in data["params"]),
        checks=tuple(Check(expr_from_json(c["cond"]), c["message"]) for c in data["checks"]),
        workspaces=tuple(
            Workspace(w["dtype"], _exprs_from_json(w["shape"])) for w in data["workspaces"]
        ),
        kernels=tuple(_kernel_from_dict(k) for k in data["kernels"]),
        returns=tuple(data["returns"]),
        returns_list=bool(data["returns_list"]),
    )


def _param_from_dict(data: Mapping[str, Any]) -> Param:
    strides = data["strides"]
    return Param(
        name=data["name"],
        kind=data["kind"],
        dtype=data["dtype"],
        device=data["device"],
        shape=_exprs_from_json(data["shape"]),
        strides=None if strides is None else _exprs_from_json(strides),
        access=data["access"],
        role=data["role"],
        symbol=data.get("symbol"),
        align=data.get("align"),
    )


def _kernel_from_dict(data: Mapping[str, Any]) -> KernelLaunch:
    def three(values: Sequence[Any]) -> tuple[IntExpr, IntExpr, IntExpr]:
        x, y, z = _exprs_from_json(values)
        return x, y, z

    cx, cy, cz = data["cluster"]
    return KernelLaunch(
        entry=data["entry"],
        grid=three(data["grid"]),
        block=three(data["block"]),
        args=tuple(ArgRef(*next(iter(a.items()))) for a in data["args"]),
        scratch_bytes=data["scratch_bytes"],
        dyn_smem=expr_from_json(data["dyn_smem"]),
        cluster=(cx, cy, cz),
        flags=tuple(data["flags"]),
    )
