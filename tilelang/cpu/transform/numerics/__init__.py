"""The numeric contract on the CPU: passes that make LLVM and C compute exactly what it says.

:func:`legalize_numerics` runs on loops and buffers (N-D or flat) before anything simplifies;
:func:`expand_numerics` runs last, after ``LowerIntrin``. Between the two, what a simplifier or
vectoriser could break stands as calls of opaque operators ``tl.num.*``.
"""

from __future__ import annotations

from tvm import tirx as T

from tilelang.cpu.transform.numerics.expand import expand_numerics
from tilelang.cpu.transform.numerics.functions import lower_math
from tilelang.cpu.transform.numerics.storage import legalize_storage
from tilelang.transform.numerics.casts import legalize_conversions
from tilelang.transform.numerics.data_integers import wrap_data_integers
from tilelang.transform.numerics.floats import legalize_minmax, unpack_pairs
from tilelang.transform.numerics.promote import promote_narrow
from tilelang.transform.numerics.temporaries import keep_temporaries

__all__ = [
    "expand_numerics",
    "keep_temporaries",
    "legalize_casts",
    "legalize_conversions",
    "legalize_minmax",
    "legalize_numerics",
    "legalize_storage",
    "lower_math",
    "promote_narrow",
    "unpack_pairs",
    "wrap_data_integers",
]


def legalize_casts(func: T.PrimFunc, *, native_half: bool = True) -> T.PrimFunc:
    """Legalise conversions and the storage of narrow types."""
    return legalize_storage(legalize_conversions(func), native_half=native_half)


def legalize_numerics(
    func: T.PrimFunc, *, fast_math: bool = False, native_half: bool = True
) -> T.PrimFunc:
    """Express the numeric contract in ``func``.

    Parameters
    ----------
    fast_math : bool
        Allow min and max to return NaN or the number when one operand is NaN.
    native_half : bool
        Whether the code generator converts float16 by itself; otherwise it is stored as uint16.

    Raises
    ------
    UnsupportedError
        For a function or buffer of a dtype that the CPU backend cannot compute.

    Before: ``B[i] = max(A[i] + 1, 0)`` on int32, ``C[i] = exp(X[i])`` on bfloat16. After: ``B[i] =
    max(tl.num.add(A[i], 1), 0)``, ``C[i] = tl.num.encode.bfloat16(tl.num.exp(
    tl.num.decode.bfloat16(X[i])))`` on uint16 buffers.
    """
    func = promote_narrow(unpack_pairs(func))
    func = wrap_data_integers(func)
    func = legalize_minmax(func, fast_math=fast_math)
    func = lower_math(func)
    return keep_temporaries(legalize_casts(func, native_half=native_half))
