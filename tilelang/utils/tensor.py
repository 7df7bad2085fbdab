"""Comparing tensors, and the ways to fill them."""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["TensorSupplyType", "torch_assert_close"]


class TensorSupplyType(enum.IntEnum):
    """How a profiler fills the inputs it generates; see :mod:`tilelang.profiler.supply`."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


def torch_assert_close(
    tensor_a: torch.Tensor,
    tensor_b: torch.Tensor,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    verbose: bool = False,
    equal_nan: bool = True,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    base_name: str = "LHS",
    ref_name: str = "RHS",
) -> bool:
    """Compare two tensors, tolerating a small share of elements out of tolerance.

    Parameters
    ----------
    tensor_a, tensor_b : torch.Tensor
        The result and the reference; same shape.
    rtol, atol : float
        An element agrees when ``|a - b| <= atol + rtol * |b|``; equal infinities agree.
    max_mismatched_ratio : float
        Largest share of disagreeing elements, from 0 to 1.
    verbose : bool
        Print the share also on success.
    equal_nan : bool
        Whether NaN agrees with NaN.
    check_device, check_dtype, check_layout, check_stride : bool
        Which attributes must be equal.
    base_name, ref_name : str
        What the message calls the two tensors.

    Returns
    -------
    bool
        True.

    Raises
    ------
    AssertionError
        If attributes or too many elements differ, naming the worst element.
    """
    _check_attributes(
        tensor_a, tensor_b, (check_device, check_dtype, check_layout, check_stride),
        (base_name, ref_name),
    )  # fmt: skip
    import torch  # type-checked above, so it is loaded already

    if tensor_b.numel() == 0:
        return True
    wide = torch.complex128 if tensor_a.is_complex() or tensor_b.is_complex() else torch.float64
    exact = not (tensor_a.is_floating_point() or tensor_a.is_complex())
    exact = exact and not tensor_b.is_floating_point()
    if exact and rtol == 0 and atol == 0:  # float64 cannot hold every int64
        mismatched = tensor_a != tensor_b.to(tensor_a.device)
        a, b = tensor_a.to(wide), tensor_b.to(tensor_a.device, wide)
    else:
        a, b = tensor_a.to(wide), tensor_b.to(tensor_a.device, wide)
        mismatched = ~torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    count, total = int(mismatched.sum()), tensor_b.numel()
    summary = f"{count} of {total} elements ({count / total:.3%}) differ"
    if verbose:
        sys.stdout.write(f"{base_name} and {ref_name}: {summary}\n")
    if count <= max_mismatched_ratio * total:
        return True
    raise AssertionError(
        f"{base_name} and {ref_name} do not agree: {summary}, allowed are "
        f"{max_mismatched_ratio:.3%} (rtol={rtol}, atol={atol})\n"
        + _worst(a, b, mismatched, tensor_a, tensor_b, (base_name, ref_name))
    )


def _check_attributes(
    a: torch.Tensor, b: torch.Tensor, checked: tuple[bool, ...], names: tuple[str, str]
) -> None:
    attributes = [("shape", tuple(a.shape), tuple(b.shape))]
    for name, wanted in zip(("device", "dtype", "layout"), checked, strict=False):
        if wanted:
            attributes.append((name, getattr(a, name), getattr(b, name)))
    if checked[3]:
        attributes.append(("stride", a.stride(), b.stride()))
    for name, left, right in attributes:
        if left != right:
            raise AssertionError(f"{name} differs: {names[0]} has {left}, {names[1]} has {right}")


def _worst(
    a: torch.Tensor,
    b: torch.Tensor,
    mismatched: torch.Tensor,
    shown_a: Any,
    shown_b: Any,
    names: tuple[str, str],
) -> str:
    """The element that is furthest off, and the first one that is off."""
    import torch  # loaded by the caller

    error = torch.where(mismatched, (a - b).abs(), -1.0).nan_to_num(nan=float("inf"))
    lines = []
    for label, score in (("first", mismatched.int()), ("worst", error)):
        at = tuple(int(i) for i in torch.unravel_index(score.argmax(), a.shape))
        left, right = shown_a[at].item(), shown_b[at].item()
        lines.append(f"  {label} at {at}: {names[0]} {left}, {names[1]} {right}")
    return "\n".join(lines)
