"""The named data types (``float16``, ``int32x4``, ...) and the helpers over them.

The constants are made from the table of :mod:`tilelang.ir.dtype`, which describes them; type
checkers read the generated ``dtypes.pyi``. ``int``, ``float`` and ``bool`` are data types here.
"""

from tilelang.ir.dtype import (
    NAMES,
    AnyDType,
    declared_dtype,
    dtype,
    get_tvm_dtype,
    is_f8f6f4_family,
    is_float4,
    is_float4_e2m1_unpacked,
    is_float4_e2m1fn,
    validate_gemm_ab_dtypes,
)

__all__ = [
    "AnyDType",
    "declared_dtype",
    "dtype",
    "get_tvm_dtype",
    "is_f8f6f4_family",
    "is_float4",
    "is_float4_e2m1_unpacked",
    "is_float4_e2m1fn",
    "validate_gemm_ab_dtypes",
    *NAMES,
]

globals().update({name: dtype(name) for name in NAMES})
