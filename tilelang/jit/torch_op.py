"""Kernels inside ``torch.compile``: a torch operator that launches any kernel.

Dynamo cannot look into a native call, so a kernel called while a graph is captured goes through
``torch.ops.tilelang.launch_<number of outputs>``, or ``update_<number>`` if it writes arguments.
The operator names the kernel by its content key, never by a counter: graphs are cached on disk by
what they contain. Arguments travel sorted by kind, because an operator's schema is fixed: integers,
floats, tensors read, tensors written.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tilelang.engine.expr_program import IntExpr, Sym, symbols
from tilelang.engine.launch_plan import LaunchPlan, Param
from tilelang.errors import LaunchError
from tilelang.ir.dtype import dtype as as_dtype

if TYPE_CHECKING:
    from tilelang.jit.kernel import JITKernel

__all__ = ["GraphCall", "launch_in_graph", "publish"]

_KERNELS: weakref.WeakValueDictionary[str, JITKernel] = weakref.WeakValueDictionary()

_LISTS = ("ints", "floats", "reads", "writes")
_LIBRARY = torch.library.Library("tilelang", "FRAGMENT")


class GraphCall(NamedTuple):
    """How a graph calls a kernel: plain values, so that Dynamo takes them for constants.

    ``lists`` names, for every argument in order, the list of the operator that it goes to.
    """

    key: str
    operator: str
    lists: tuple[str, ...]
    returns_list: bool


def publish(key: str, kernel: JITKernel) -> GraphCall:
    """Make ``kernel`` reachable for graphs as long as somebody holds it."""
    _KERNELS[key] = kernel
    lists = tuple(_list_of(param) for param in kernel.inputs)
    name = _define(len(kernel.plan.returns), "writes" in lists)
    return GraphCall(key, name, lists, kernel.plan.returns_list)


@functools.cache
def _define(outputs: int, writes: bool) -> str:
    """Define the operator of kernels that return so many tensors and do or do not write arguments.

    Functionalisation takes a fixed number of results, not a list, and inductor no operator that
    could write but was given nothing to write.
    """
    name = f"{'update' if writes else 'launch'}_{outputs}"
    written = ", Tensor(a!)[] writes" if writes else ""
    returns = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
    arguments = f"str kernel, SymInt[] ints, float[] floats, Tensor?[] reads{written}"
    _LIBRARY.define(f"{name}({arguments}) -> {returns}")
    _LIBRARY.impl(name, _launch, "CompositeExplicitAutograd")
    torch.library.register_fake(f"tilelang::{name}", _launch_fake, lib=_LIBRARY)
    return name


def launch_in_graph(call: GraphCall, args: Sequence[Any]) -> Any:
    """Call a kernel as an operator of the graph that is being captured."""
    lists: dict[str, list[Any]] = {name: [] for name in _LISTS}
    for name, value in zip(call.lists, args, strict=True):
        lists[name].append(value)
    writes = [lists["writes"]] if lists["writes"] else []
    found = getattr(torch.ops.tilelang, call.operator)(
        call.key, lists["ints"], lists["floats"], lists["reads"], *writes
    )
    if call.returns_list:
        return [found] if isinstance(found, torch.Tensor) else list(found)
    return found


def _list_of(param: Param) -> str:
    if param.kind == "tensor":
        return "writes" if "w" in param.access else "reads"
    return "floats" if "float" in param.dtype else "ints"


def _kernel(key: str) -> JITKernel:
    kernel = _KERNELS.get(key)
    if kernel is None:
        raise LaunchError(
            "a compiled graph uses a TileLang kernel that is not loaded in this process; keep a "
            "reference to the kernel as long as the graph is used"
        )
    return kernel


def _arguments(plan: LaunchPlan, lists: Sequence[Sequence[Any]]) -> list[Any]:
    streams = dict(zip(_LISTS, map(iter, lists), strict=False))
    return [next(streams[_list_of(param)]) for param in plan.inputs()]


def _results(found: Sequence[torch.Tensor]) -> Any:
    """Tensors as an operator returns them: none, one, or a tuple."""
    return (tuple(found) if len(found) > 1 else found[0]) if found else None


def _launch(key: str, *lists: Sequence[Any]) -> Any:
    kernel = _kernel(key)
    found = kernel.torch_function(*_arguments(kernel.plan, lists))
    return _results(found) if kernel.plan.returns_list else found


def _launch_fake(key: str, *lists: Sequence[Any]) -> Any:
    """Shapes of the outputs, for tensors without data and possibly symbolic sizes."""
    plan = _kernel(key).plan
    args = _arguments(plan, lists)
    values = _bind_symbols(plan, args)
    device = next((a.device for a in args if isinstance(a, torch.Tensor)), torch.device("cpu"))
    return _results([_fake_output(plan.params[index], values, device) for index in plan.returns])


def _fake_output(param: Param, values: dict[int, Any], device: torch.device) -> torch.Tensor:
    shape = [_evaluate(extent, values) for extent in param.shape]
    dtype = as_dtype(param.dtype)
    if dtype.lanes > 1 and not dtype.is_float4():
        # torch has no vectors; the lanes are one more dimension.
        dtype, shape = dtype.element, [*shape, dtype.lanes]
    storage = dtype.as_torch()
    per_element = storage.itemsize * 8 // dtype.bits
    if per_element > 1:
        shape[-1] = (shape[-1] + per_element - 1) // per_element
    return torch.empty(shape, dtype=storage, device=device)


def _bind_symbols(plan: LaunchPlan, args: Sequence[Any]) -> dict[int, Any]:
    values: dict[int, Any] = {}
    extents: list[tuple[IntExpr, Any]] = []
    for param, value in zip(plan.inputs(), args, strict=True):
        if param.symbol is not None:
            values[param.symbol] = value
        elif isinstance(value, torch.Tensor) and param.kind == "tensor":
            lanes = as_dtype(param.dtype).lanes if value.dim() > len(param.shape) else 1
            shape = value.shape if lanes == 1 else value.shape[:-1]
            extents += zip(param.shape, shape, strict=True)
            strides = [stride // lanes for stride in value.stride()]
            extents += zip(param.strides or (), strides, strict=False)
    progress = True
    while progress:
        progress = False
        for expr, extent in extents:
            unknown = {index for index in symbols(expr) if index not in values}
            if len(unknown) == 1:
                index = unknown.pop()
                values[index] = _solve(expr, index, extent, values)
                progress = True
    return values


def _solve(expr: IntExpr, index: int, extent: Any, values: dict[int, Any]) -> Any:
    """The value of the one unknown symbol of an expression that is linear in it."""
    if isinstance(expr, Sym):
        return extent
    at_zero, at_one = (_evaluate(expr, {**values, index: x}) for x in (0, 1))
    return (extent - at_zero) // (at_one - at_zero)


# Without the 64-bit wrap of the launcher: sizes here may be symbols of torch, not integers.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "min": torch.sym_min,
    "max": torch.sym_max,
    "not": torch.sym_not,
    "and": lambda a, b: b if a else a,
    "or": lambda a, b: a if a else b,
    "select": lambda condition, a, b: a if condition else b,
}


def _evaluate(expr: IntExpr, values: dict[int, Any]) -> Any:
    if isinstance(expr, int):
        return expr
    if isinstance(expr, Sym):
        return values[expr.index]
    return _OPERATORS[expr[0]](*(_evaluate(operand, values) for operand in expr[1:]))
