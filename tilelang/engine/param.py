"""Description of a kernel parameter, as tools and adapters see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.ir.dtype import dtype as as_dtype
from tilelang.ir.expr import const_int, dtype_of

__all__ = ["KernelParam"]


@dataclass(frozen=True)
class KernelParam:
    """A parameter: dtype and shape; a scalar has an empty shape.

    Parameters
    ----------
    dtype : str
        Element dtype.
    shape : tuple
        Extents in elements: Python ints, or expressions of symbolic sizes.
    name : str
        Name in the user's function.
    """

    dtype: str
    shape: tuple[Any, ...]
    name: str = ""
    is_tensor: bool = True

    @classmethod
    def from_buffer(cls, buffer: ir.Var) -> KernelParam:
        """Describe a buffer parameter."""
        sizes = [const_int(extent) for extent in buffer.shape]
        shape = tuple(e if s is None else s for e, s in zip(buffer.shape, sizes, strict=True))
        return cls(dtype_of(buffer), shape, buffer.name)

    @classmethod
    def from_var(cls, var: ir.Var) -> KernelParam:
        """Describe a scalar or pointer parameter."""
        return cls(dtype_of(var), (), var.name, is_tensor=False)

    @classmethod
    def of(cls, param: ir.Var) -> KernelParam:
        """Describe any parameter."""
        is_tensor = isinstance(param.ty, T.BufferType)
        return cls.from_buffer(param) if is_tensor else cls.from_var(param)

    def is_scalar(self) -> bool:
        """Whether this is a run-time scalar (or pointer) rather than a tensor."""
        return not self.is_tensor

    def is_unsigned(self) -> bool:
        """Whether the dtype is an unsigned integer."""
        return self.dtype.startswith("uint")

    def is_float8(self) -> bool:
        """Whether the dtype is an 8-bit float."""
        return self.dtype.startswith("float8")

    def is_float4(self) -> bool:
        """Whether the dtype is a 4-bit float."""
        return self.dtype.startswith("float4")

    def is_boolean(self) -> bool:
        """Whether the dtype is bool."""
        return self.dtype == "bool"

    def torch_dtype(self) -> Any:
        """The torch dtype that stores this parameter: of a vector, that of its lanes."""
        dtype = as_dtype(self.dtype)
        return (dtype.element if self.torch_lanes() > 1 else dtype).as_torch()

    def torch_lanes(self) -> int:
        """Lanes that torch keeps as one more dimension, at the end; 1 without vectors."""
        dtype = as_dtype(self.dtype)
        return 1 if dtype.is_float4() else dtype.lanes

    def tilelang_dtype(self) -> Any:
        """The dtype as a ``T.dtype``."""
        return as_dtype(self.dtype)
