"""Launch plans and Python workers for the tests of the native runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilelang._native import make_binder, make_cpu_launcher
from tilelang.engine.expr_program import Sym
from tilelang.engine.launch_plan import ArgRef, KernelLaunch, LaunchPlan, Param

N, M, K = Sym(0), Sym(1), Sym(2)
NAMES = ("n", "m", "k")


def tensor(name: str, *shape: Any, dtype: str = "float32", **options: Any) -> Param:
    return Param(name, "tensor", dtype, shape=shape, **options)


def scalar(name: str, dtype: str, symbol: int | None = None) -> Param:
    return Param(name, "scalar", dtype, symbol=symbol)


def plan_of(
    *params: Param,
    symbols: Sequence[str] = NAMES,
    grid: tuple[Any, Any, Any] = (1, 1, 1),
    returns_list: bool = False,
    **options: Any,
) -> LaunchPlan:
    """A plan with one kernel that takes every parameter, and returns every output."""
    args = tuple(ArgRef("param", i) for i in range(len(params)))
    kernel = KernelLaunch("kernel", grid=grid, args=args, **options.pop("kernel", {}))
    outputs = tuple(i for i, p in enumerate(params) if p.role == "out")
    many = returns_list or len(outputs) > 1
    return LaunchPlan(
        "f",
        tuple(symbols),
        params,
        kernels=(kernel,),
        returns=outputs,
        returns_list=many,
        **options,
    )


def bind(*params: Param, args: Sequence[Any], **options: Any) -> Any:
    """Bind ``args`` to a plan of ``params``."""
    return make_binder(plan_of(*params, **options))(*args)


def launch(*params: Param, worker: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A launcher whose only kernel is ``worker``."""
    return make_cpu_launcher(plan_of(*params, **options), [worker or (lambda *_: None)])


def slot_array(slots: ctypes.c_void_p, count: int) -> list[int]:
    """The argument words a worker was given."""
    return list((ctypes.c_uint64 * count).from_address(slots.value))


def memory(address: int, count: int, dtype: str = "float32") -> np.ndarray:
    """View of ``count`` elements at an address."""
    raw = (ctypes.c_uint8 * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(raw, dtype)
