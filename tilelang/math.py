"""Integer helpers for tile sizes."""

from __future__ import annotations

__all__ = ["cdiv", "next_power_of_2"]


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is at least ``x``.

    Raises
    ------
    ValueError
        If ``x`` is not positive.

    Examples
    --------
    >>> next_power_of_2(100), next_power_of_2(64)
    (128, 64)
    """
    if x < 1:
        raise ValueError(f"next_power_of_2 takes a positive integer, found {x}")
    return 1 << (int(x) - 1).bit_length()


def cdiv(a: int, b: int) -> int:
    """``a / b`` rounded up, for any signs.

    Examples
    --------
    >>> cdiv(100, 32), cdiv(-7, 2)
    (4, -3)
    """
    return -(-a // b)
