"""Binding of call arguments: memory of tensors, values of symbols, allocation of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_walk

from tilelang.errors import ArgumentTypeError, ArgumentValueError
from tilelang.interpreter.expressions import Expressions
from tilelang.interpreter.machine import Machine
from tilelang.interpreter.memory import Storage, View, strides_of
from tilelang.interpreter.nodes import dtype_of
from tilelang.interpreter.numbers import Dtype, cast, dtype_named
from tilelang.interpreter.pointers import Pointer, bytes_at
from tilelang.ir.dtype import dtype as language_dtype
from tilelang.ir.expr import is_buffer

__all__ = ["Signature"]

_PACKED_STORAGE = ("int8", "uint8", "float4_e2m1fn_x2")


class Signature:
    """The parameters of a function, and how a call binds them.

    Parameters
    ----------
    code : Expressions
        Learns which variables are sizes.
    func : PrimFunc
    outputs : sequence of int
        Positions of the parameters that the call allocates and returns.
    """

    def __init__(self, code: Expressions, func: T.PrimFunc, outputs: Sequence[int]) -> None:
        self.func = func
        self.params = [code.var(param) for param in func.params]
        self.outputs = tuple(outputs)
        self._code = code
        sizes: set[ir.Var] = set()
        self._extents: dict[ir.Var, list[tuple[ir.Expr, set[ir.Var]]]] = {}
        for param in self.params:
            if is_buffer(param):
                exprs = [*param.shape, *param.ty.strides]
                self._extents[param] = [(expr, self._variables(expr)) for expr in exprs]
                sizes.update(*(unknown for _, unknown in self._extents[param]))
        code.index_vars |= sizes
        self._used: set[ir.Var] = set()
        structural_walk(func.body, (ir.Var, lambda var: self._used.add(code.var(var))))

    def bind(self, m: Machine, args: Sequence[Any]) -> list[Any]:
        """Bind ``args`` (outputs may be left out) and return one torch tensor a new output.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            Names the argument, what was expected and what was given.
        """
        given = self._place(args)
        tensors: dict[ir.Var, _Tensor] = {}
        for param in self.params:
            value = given.get(param)
            if not is_buffer(param):
                self._bind_scalar(m, param, value)
            elif value is not None:
                tensors[param] = _Tensor(param, value)
            elif param in given and param in self._used:
                raise ArgumentTypeError(
                    f"argument '{param.name}': expected a tensor, got None; the kernel uses it",
                    param.span,
                )
        self._solve(m, tensors)
        for param, tensor in tensors.items():
            self._check_shape(m, param, tensor)
            m.views[param] = tensor.view(dtype_named(str(param.dtype)))
        return [self._allocate(m, p) for i, p in enumerate(self.params) if self._is_new(i, given)]

    def _is_new(self, position: int, given: dict[ir.Var, Any]) -> bool:
        return position in self.outputs and self.params[position] not in given

    def _place(self, args: Sequence[Any]) -> dict[ir.Var, Any]:
        inputs = [p for i, p in enumerate(self.params) if i not in self.outputs]
        for params in (inputs, self.params):
            if len(args) == len(params):
                return dict(zip(params, args, strict=True))
        defaults = (self.func.attrs or {}).get("tilelang_defaults", {})
        left_out = inputs[len(args) :]
        if left_out and all(param.name in defaults for param in left_out):
            filled = [*args, *(defaults[param.name] for param in left_out)]
            return dict(zip(inputs, filled, strict=True))
        names = ", ".join(p.name for p in inputs)
        raise ArgumentTypeError(
            f"expected {len(inputs)} arguments ({names}), got {len(args)}", self.func.span
        )

    def _bind_scalar(self, m: Machine, param: ir.Var, value: Any) -> None:
        if isinstance(param.ty, ir.PointerType):
            address = value if isinstance(value, int) else _Tensor(param, value, any_dtype=True)
            m.assign(
                param, Pointer(None, 8 * address) if isinstance(address, int) else address.start
            )
            return
        dtype = dtype_of(param)
        number = value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value
        if not isinstance(number, (bool, int, float) if dtype.kind == "f" else (bool, int)):
            kind = repr(value) if isinstance(value, (float, str)) else type(value).__name__
            raise ArgumentTypeError(
                f"argument '{param.name}': expected a number for {dtype.name}, got {kind}",
                param.span,
            )
        source = dtype_named("float64" if isinstance(number, float) else "int64")
        if dtype.is_int and isinstance(number, int):
            low = -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0
            if not low <= number < low + (1 << dtype.bits):
                raise ArgumentValueError(
                    f"argument '{param.name}': {number} does not fit {dtype.name}", param.span
                )
            converted = dtype.carrier.type(number)
        else:
            converted = cast(source.carrier.type(number), source, dtype)
        m.assign(param, int(converted) if param in self._code.index_vars else converted)

    def _solve(self, m: Machine, tensors: dict[ir.Var, _Tensor]) -> None:
        """Bind the symbols that occur in shapes and strides, each as soon as one is alone."""
        pending = [
            (param, dim, expr, unknown)
            for param, tensor in tensors.items()
            for dim, (expr, unknown) in enumerate(self._extents[param])
            if dim < len(tensor.shape) + len(tensor.strides)
        ]
        progress = True
        while progress:
            progress = False
            for param, dim, expr, unknown in pending:
                open_vars = unknown - m.env.keys()
                if len(open_vars) == 1:
                    actual = [*tensors[param].shape, *tensors[param].strides][dim]
                    lowest = 0 if dim < len(param.shape) else -(2**63)
                    progress |= self._solve_one(m, expr, open_vars.pop(), actual, lowest)

    def _solve_one(self, m: Machine, expr: ir.Expr, var: ir.Var, actual: int, lowest: int) -> bool:
        """Solve ``expr == actual`` for ``var``, at least ``lowest``, if it is linear."""
        function = self._code.index(expr)

        def at(value: int) -> int:
            m.assign(var, value)
            return int(function(m))

        base, slope = at(0), at(1) - at(0)
        solution = (actual - base) // slope if slope else 0
        if slope and solution >= lowest and at(solution) == actual:
            return True
        del m.env[var]
        return False

    def _check_shape(self, m: Machine, param: ir.Var, tensor: _Tensor) -> None:
        rank = len(param.shape)
        if len(tensor.shape) != rank:
            raise ArgumentValueError(
                f"argument '{param.name}': expected {rank} dimensions, got shape "
                f"{tuple(tensor.shape)}",
                param.span,
            )
        shape = self._expected(m, param, [e for e, _ in self._extents[param][:rank]])
        if list(tensor.shape) != shape:
            raise ArgumentValueError(
                f"argument '{param.name}': expected shape {_show(param.shape, shape)}, got "
                f"{tuple(tensor.shape)}",
                param.span,
            )
        strided = self._extents[param][rank:]
        wanted = (
            self._expected(m, param, [e for e, _ in strided])
            if strided
            else strides_of(tuple(shape))
        )
        if 0 in shape:
            return
        for extent, want, found in zip(shape, wanted, tensor.strides, strict=True):
            if extent != 1 and want != found:
                raise ArgumentValueError(
                    f"argument '{param.name}': expected strides {tuple(wanted)}, got "
                    f"{tuple(tensor.strides)}" + ("" if strided else "; pass a contiguous tensor"),
                    param.span,
                )

    def _expected(self, m: Machine, param: ir.Var, exprs: Sequence[ir.Expr]) -> list[int]:
        for expr in exprs:
            missing = self._variables(expr) - m.env.keys()
            if missing:
                name = next(iter(missing)).name
                raise ArgumentValueError(
                    f"argument '{param.name}': no value of {name} gives the sizes of the "
                    f"arguments; expected an extent or stride {expr}",
                    param.span,
                )
        return [int(self._code.index(expr)(m)) for expr in exprs]

    def _variables(self, expr: Any) -> set[ir.Var]:
        found: set[ir.Var] = set()
        structural_walk(expr, (ir.Var, lambda var: found.add(self._code.var(var))))
        return found

    def _allocate(self, m: Machine, param: ir.Var) -> Any:
        import torch  # only to return tensors

        shape = self._expected(m, param, list(param.shape))
        dtype = dtype_named(str(param.dtype))
        stored = _stored_dtype(dtype)
        per_byte = _elements_a_byte(dtype)
        if per_byte > 1 and (not shape or shape[-1] % per_byte):
            raise ArgumentValueError(
                f"output '{param.name}': the last extent of {dtype.name} must be even, got {shape}",
                param.span,
            )
        physical = [*shape[:-1], shape[-1] // per_byte] if shape else []
        physical += dtype.vector_shape if per_byte == 1 and not dtype.packed else ()
        result = torch.empty(physical, dtype=stored)
        data = bytes_at(result.data_ptr(), result.numel() * result.element_size(), result)
        data[:] = 0
        storage = Storage(param.name, "global", data, np.zeros_like(data), None)
        m.views[param] = View(param.name, dtype, tuple(shape), strides_of(tuple(shape)), 0, storage)
        return result


def _show(exprs: Sequence[ir.Expr], shape: Sequence[int]) -> str:
    parts = [
        str(size) if isinstance(expr, prim.IntImm) else f"{expr} = {size}"
        for expr, size in zip(exprs, shape, strict=True)
    ]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


class _Tensor:
    """A tensor argument: shape and strides in elements of the parameter's dtype, and its bytes."""

    def __init__(self, param: ir.Var, value: Any, any_dtype: bool = False) -> None:
        self.name = param.name
        if isinstance(value, np.ndarray):
            kind, itemsize = value.dtype.name, value.itemsize
            shape, strides = list(value.shape), [s // itemsize for s in value.strides]
            address = value.__array_interface__["data"][0]
        elif type(value).__module__.partition(".")[0] == "torch" or hasattr(value, "data_ptr"):
            value = value.detach()
            if value.is_meta or str(value.layout) != "torch.strided":
                found = "meta" if value.is_meta else str(value.layout).removeprefix("torch.")
                raise ArgumentTypeError(
                    f"argument '{param.name}': expected a dense tensor with memory, got a {found} "
                    "tensor",
                    param.span,
                )
            kind, itemsize = str(value.dtype).removeprefix("torch."), value.element_size()
            shape, strides, address = list(value.shape), list(value.stride()), value.data_ptr()
        else:
            raise ArgumentTypeError(
                f"argument '{param.name}': expected a tensor, got {type(value).__name__}",
                param.span,
            )
        bits = 8 * itemsize
        if not any_dtype:
            dtype = self._checked_dtype(param, kind)
            bits = dtype.memory_bits * dtype.lanes
            if dtype.lanes > 1 and not dtype.packed:
                shape, strides = self._vectors(param, dtype, shape, strides)
            if _elements_a_byte(dtype) > 1 and shape:
                shape[-1] *= 2
                strides = [2 * stride for stride in strides[:-1]] + [1]
        self.shape, self.strides = shape, strides
        self._locate(value, address, bits)

    @staticmethod
    def _vectors(
        param: ir.Var, dtype: Dtype, shape: list[int], strides: list[int]
    ) -> tuple[list[int], list[int]]:
        """Shape and strides in vectors of a tensor of scalars, whose last dimension they are."""
        fits = shape[-1:] == [dtype.lanes] and strides[-1] == 1
        if not fits or any(stride % dtype.lanes for stride in strides[:-1]):
            raise ArgumentValueError(
                f"argument '{param.name}': expected the {dtype.lanes} lanes of {dtype.name} as "
                f"last dimension, got shape {tuple(shape)}, strides {tuple(strides)}",
                param.span,
            )
        return shape[:-1], [stride // dtype.lanes for stride in strides[:-1]]

    @staticmethod
    def _checked_dtype(param: ir.Var, kind: str) -> Dtype:
        wanted = dtype_named(str(param.dtype))
        scalar = wanted.scalar
        accepted = _PACKED_STORAGE if wanted.packed else (scalar.name, scalar.carrier.name)
        if kind not in accepted:
            stored = f" (stored as {' or '.join(accepted)})" if wanted.packed else ""
            raise ArgumentTypeError(
                f"argument '{param.name}': expected dtype {wanted.name}{stored}, got {kind}",
                param.span,
            )
        return wanted

    def _locate(self, value: Any, address: int, bits: int) -> None:
        if 0 in self.shape:
            self.data, self.offset = np.zeros(0, np.uint8), 0
            return
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + 1
        nbytes = ((high - low) * bits + 7) // 8
        self.data, self.offset = bytes_at(address + low * bits // 8, nbytes, value), -low

    @property
    def start(self) -> Pointer:
        """The address of element 0."""
        return Pointer(Storage(self.name, "global", self.data, None, None), 0)

    def view(self, dtype: Dtype) -> View:
        """The tensor as a buffer of ``dtype``."""
        storage = Storage(self.name, "global", self.data, None, None)
        return View(self.name, dtype, tuple(self.shape), tuple(self.strides), self.offset, storage)


def _stored_dtype(dtype: Dtype) -> Any:
    """The torch dtype of a tensor that holds ``dtype``, lane by lane unless it is packed."""
    return language_dtype((dtype if dtype.packed else dtype.scalar).name).as_torch()


def _elements_a_byte(dtype: Dtype) -> int:
    """How many elements of a buffer share a byte of the tensor that holds it."""
    return 2 if dtype.packed and dtype.lanes == 1 else 1
