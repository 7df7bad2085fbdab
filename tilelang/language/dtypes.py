"""The data types, as :mod:`tilelang.dtypes` has them."""

from tilelang import dtypes as _dtypes

__all__ = [name for name in _dtypes.__all__ if name != "declared_dtype"]

globals().update({name: getattr(_dtypes, name) for name in __all__})
