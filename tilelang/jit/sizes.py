"""The sizes an eager kernel is compiled for, read from the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelang.errors import ArgumentTypeError, ArgumentValueError
from tilelang.language.eager import ConstSource, EagerSignature

__all__ = ["in_elements", "read_sizes"]


def read_sizes(
    name: str,
    signature: EagerSignature,
    values: Mapping[str, Any],
    given: Mapping[str, Any],
) -> dict[str, int]:
    """The values of the ``T.const`` sizes.

    Parameters
    ----------
    name : str
        Name of the kernel, for messages.
    signature : EagerSignature
        Says which dimension of which argument each size is.
    values : mapping
        The arguments of the call; those that are missing give no size.
    given : mapping
        Sizes given by keyword.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is no tensor or of the wrong rank, or two values contradict each other.
    """
    sizes = {const: _given_size(name, const, value) for const, value in given.items()}
    for const, source in signature.consts.items():
        if source.argument not in values:
            continue
        tensor = values[source.argument]
        if tensor is None:
            if const in sizes:
                continue
            raise ArgumentTypeError(
                f"{name}(): argument '{source.argument}' is None, but it gives size '{const}'"
            )
        found = _size(name, signature.arguments[source.argument], source, tensor)
        if sizes.setdefault(const, found) != found:
            raise ArgumentValueError(
                f"{name}(): size '{const}' is {found} in {source.field}[{source.dim}] of argument "
                f"'{source.argument}', but the call says {const}={sizes[const]}"
            )
    return sizes


def _given_size(name: str, const: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ArgumentTypeError(
            f"{name}() got an unexpected keyword argument '{const}', or size '{const}' is no "
            f"integer: {value!r}"
        )
    return value


def _size(name: str, spec: Any, source: ConstSource, tensor: Any) -> int:
    shape = getattr(tensor, "shape", None)
    if shape is None:
        raise ArgumentTypeError(
            f"{name}(): argument '{source.argument}' must be a tensor, "
            f"found {type(tensor).__name__}"
        )
    rank = len(spec.shape)
    if len(shape) != rank:
        raise ArgumentValueError(
            f"{name}(): argument '{source.argument}' has rank {len(shape)} {tuple(shape)}, "
            f"expected {rank}"
        )
    itemsize = int(tensor.dtype.itemsize)
    if source.field == "shape":
        number = int(shape[source.dim])
    elif hasattr(tensor, "stride"):
        number = int(tensor.stride(source.dim))
    else:  # numpy counts bytes
        number = int(tensor.strides[source.dim]) // itemsize
    return in_elements(number, itemsize, spec, source)


def in_elements(number: int, itemsize: int, spec: Any, source: ConstSource) -> int:
    """An extent or stride of a tensor, counted in elements of the declared dtype.

    The storage of a dtype narrower than a byte holds several elements in each item, packed along
    the last dimension: its extent counts items, and so do the strides of all others.
    """
    if spec.dtype.bits >= 8:
        return number
    last = source.dim == len(spec.shape) - 1
    packed = last == (source.field == "shape")
    return number * (8 * itemsize // spec.dtype.bits) if packed else number
