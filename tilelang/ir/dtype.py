"""Data types of tile programs: one table, one value class, conversions from and to other libraries.

A :class:`dtype` is an immutable string, so it compares, hashes and formats as its name, and it is
accepted wherever TVM takes a dtype. All named constants of :mod:`tilelang.dtypes` (``float16``,
``int32x4``, ...) and their stub come from the table below::

    from tilelang import language as T

    T.float16.bits                    # 16
    T.dtype("half") is T.float16      # True; also torch.float16, numpy.float16, ...
    T.float16(x)                      # cast an expression; T.float16(1.5) is a constant
    T.bfloat16x2(a, b)                # pack two lanes into a vector

Types that stock TVM does not know are stored as one it knows, with a mark on the type object:

* ``tfloat32`` is stored as float32. Casting to it rounds to 10 mantissa bits (nearest, ties away
  from zero), a copy moves the bits.
* ``float4_e2m1_unpacked`` is stored as uint8: one 4-bit float in the low bits of each byte.

The mark is the source name of the span of the ``PrimType`` (:attr:`dtype.prim_type`). It stays on
buffer types and variables through passes and JSON, and is invisible to structural equality and to
loads; :func:`declared_dtype` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tvm_ffi
from tvm import ir
from tvm import tirx as T
from tvm_ffi import core

from tilelang.errors import TraceTypeError
from tilelang.ir.span import user_span

__all__ = [
    "ALIASES",
    "NAMES",
    "AnyDType",
    "declared_dtype",
    "dtype",
    "get_tvm_dtype",
    "is_f8f6f4_family",
    "is_float4",
    "is_float4_e2m1_unpacked",
    "is_float4_e2m1fn",
    "validate_gemm_ab_dtypes",
]

_LANES = (2, 4, 8, 16, 32, 64)
_MARK = "tl.dtype/"


@dataclass(frozen=True)
class _Row:
    """One scalar type: its name, how TVM, torch and numpy store it, which vectors have a name."""

    name: str
    storage: str | None = None  # TVM's name where it differs
    torch: tuple[str, ...] = ()  # candidates, first one this torch has wins; () = the own name
    numpy: str | None = None  # numpy or ml_dtypes name where it differs; "" = none
    lanes: tuple[int, ...] = ()
    constant: bool = True  # whether the language has a constant of this name
    vectors: bool = True


_TABLE = {
    row.name: row
    for row in (
        _Row("bool"),
        _Row("int4", torch=("int8",)),
        _Row("uint4", torch=("uint8",), constant=False),
        *(_Row(f"{sign}int{bits}", lanes=_LANES) for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *(_Row(f"float{bits}", lanes=_LANES) for bits in (16, 32, 64)),
        _Row("bfloat16", lanes=(2,)),
        _Row("tfloat32", storage="float32", torch=("float32",), numpy="float32", lanes=_LANES),
        _Row("float8_e3m4", torch=("",), lanes=_LANES),
        # The name without suffix means the finite-only variant of the platform.
        _Row("float8_e4m3", torch=("float8_e4m3fn",), numpy="float8_e4m3fn", lanes=_LANES),
        _Row("float8_e4m3b11fnuz", torch=("",), lanes=_LANES),
        _Row("float8_e4m3fn", lanes=_LANES),
        _Row("float8_e4m3fnuz", lanes=_LANES),
        _Row("float8_e5m2", lanes=_LANES),
        _Row("float8_e5m2fnuz", lanes=_LANES),
        _Row("float8_e8m0fnu", lanes=_LANES),
        _Row("float6_e2m3fn", torch=("",), lanes=_LANES),
        _Row("float6_e3m2fn", torch=("",), lanes=_LANES),
        _Row("float4_e2m1fn", torch=("float4_e2m1fn_x2", "int8"), lanes=_LANES),
        _Row("float4_e2m1_unpacked", "uint8", torch=("uint8",), numpy="uint8", vectors=False),
    )
}

_ALIAS_CONSTANTS = {
    "short": "int16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
#: Alternative spellings accepted by :class:`dtype`, with the names they stand for.
ALIASES = {
    **_ALIAS_CONSTANTS,
    "ulong": "uint64",
    "boolean": "bool",
    "float4_e2m1fn_x2": "float4_e2m1fnx2",  # torch's spelling of a packed pair
}

#: Every named constant of :mod:`tilelang.dtypes`, in table order.
NAMES: tuple[str, ...] = (
    *_ALIAS_CONSTANTS,
    *(
        f"{row.name}{suffix}"
        for row in _TABLE.values()
        if row.constant
        for suffix in ("", *(f"x{lanes}" for lanes in row.lanes))
    ),
)

_OPAQUE = ("handle", "void")  # pointers and the absence of a value

_PYTHON_TYPES: dict[Any, str] = {
    bool: "bool",
    int: "int32",
    float: "float32",
}


class dtype(tvm_ffi.dtype):
    """A data type: a string with properties, callable like a Python type.

    Parameters
    ----------
    value : AnyDType
        A dtype, its name or an alias (``double float half int long short uint ulong boolean``),
        one of the Python types ``bool int float`` (``int32`` and ``float32``), a numpy or
        ml_dtypes type, a ``torch.dtype``, or a TVM primitive type.

    Raises
    ------
    TraceTypeError
        If ``value`` names no data type.

    Examples
    --------
    >>> dtype("half") is dtype("float16"), "int" in dtype("uint8"), dtype("int32x4").lanes
    (True, True, 4)
    """

    __slots__ = ("_element", "_is_float", "_is_integer", "_storage")
    _element: dtype
    _is_float: bool
    _is_integer: bool
    _storage: dtype
    _interned: dict[str, dtype] = {}  # noqa: RUF012  (shared on purpose: equal names are one object)

    def __new__(cls, value: AnyDType) -> dtype:
        if type(value) is dtype:
            return value
        found = cls._interned.get(value) if isinstance(value, str) else None
        if found is None:
            name = _canonical_name(value)
            found = cls._interned.get(name) or cls._interned.setdefault(name, cls._make(name))
        return found

    @classmethod
    def _make(cls, name: str) -> dtype:
        made = str.__new__(cls, name)
        storage, (element, lanes) = _storage_name(name), _split_lanes(name)
        unpacked = element == "float4_e2m1_unpacked"
        plain = tvm_ffi.dtype(storage)
        facts = {
            "_tvm_ffi_dtype": core.DataType(storage),
            "_element": made if lanes == 1 else dtype(element),
            "_storage": made if storage == name else dtype(storage),
            "_is_float": plain.is_float or unpacked,
            "_is_integer": plain.is_integer and not unpacked,
        }
        for attribute, fact in facts.items():
            object.__setattr__(made, attribute, fact)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"dtype {self} is immutable")

    def __reduce__(self) -> tuple[type[dtype], tuple[str]]:
        return dtype, (str(self),)

    @staticmethod
    def from_dlpack_data_type(dltype_data_type: tuple[int, int, int]) -> dtype:
        """The dtype of a DLPack ``(type code, bits, lanes)`` triple."""
        return dtype(tvm_ffi.dtype.from_dlpack_data_type(dltype_data_type))

    @property
    def element(self) -> dtype:
        """The scalar type of one lane."""
        return self._element

    @property
    def bytes(self) -> int:
        """Bytes of one lane, rounded up."""
        return (self.bits + 7) // 8

    @property
    def itemsize(self) -> int:
        """Bytes of the whole value (all lanes), rounded up."""
        return (self.bits * self.lanes + 7) // 8

    @property
    def is_float(self) -> bool:
        """Whether the lanes are floating-point numbers."""
        return self._is_float

    @property
    def is_integer(self) -> bool:
        """Whether the lanes are signed or unsigned integers (bool is not)."""
        return self._is_integer

    @property
    def storage(self) -> dtype:
        """The type TVM stores values in; the dtype itself unless it is tfloat32 or unpacked fp4."""
        return self._storage

    @property
    def prim_type(self) -> ir.PrimType:
        """The TVM type, marked with the name where TVM only knows the storage type."""
        if self.storage is self:
            return ir.PrimType(str(self))
        mark = ir.Span(ir.SourceName(f"{_MARK}{self}"), 0, 0, 0, 0)
        return ir.make_node("ir.PrimType", dtype=tvm_ffi.dtype(self.storage), span=mark)

    def with_lanes(self, lanes: int) -> dtype:
        """The vector of ``lanes`` such elements; 1 gives the scalar type."""
        return dtype(f"{self._element}x{lanes}") if lanes > 1 else self._element

    def is_float4(self) -> bool:
        """Whether the lanes are 4-bit floats, packed or not."""
        return self.is_float4_e2m1fn() or self.is_float4_e2m1_unpacked()

    def is_float4_e2m1fn(self) -> bool:
        """Whether the lanes are packed 4-bit floats, two a byte."""
        return self._element == "float4_e2m1fn"

    def is_float4_e2m1_unpacked(self) -> bool:
        """Whether this is a 4-bit float in an 8-bit slot."""
        return self == "float4_e2m1_unpacked"

    def as_torch(self) -> Any:
        """The ``torch.dtype`` of tensors of this type, or None for ``handle``.

        Sub-byte types give torch's packed storage: ``int4`` int8, ``float4_e2m1fn``
        ``float4_e2m1fn_x2`` (int8 where torch lacks it). ``float8_e4m3`` is the fnuz variant on
        a ROCm build of torch.

        Raises
        ------
        TraceTypeError
            If torch has no such type (fp6, some fp8 variants, vectors other than fp4 pairs).
        """
        import torch  # slow to import, and dtypes are used without it

        name, lanes = _split_lanes(str(self))
        row = _TABLE.get(name)
        if name == "handle":
            return None
        if row is not None and (lanes == 1 or str(self) == "float4_e2m1fnx2"):
            candidates = row.torch or (name,)
            if name == "float8_e4m3" and torch.version.hip:
                candidates = ("float8_e4m3fnuz",)
            for candidate in candidates:
                if hasattr(torch, candidate):
                    return getattr(torch, candidate)
        raise TraceTypeError(
            f"dtype {self} has no torch equivalent; use a view of an integer type", user_span()
        )

    def as_numpy(self) -> np.dtype:
        """The numpy dtype of one value; ml_dtypes provides the short floats and int4.

        Raises
        ------
        TraceTypeError
            For vectors and handles, which numpy cannot represent.
        """
        row = _TABLE.get(str(self))
        if row is None:
            raise TraceTypeError(f"dtype {self} has no numpy equivalent", user_span())
        name = row.numpy or row.name
        if name in np.sctypeDict:
            return np.dtype(name)
        import ml_dtypes  # only the short types need it

        return np.dtype(getattr(ml_dtypes, name))

    def __call__(self, *values: Any) -> ir.Expr:
        """Make a value of this type.

        ``t()`` is a new variable, ``t(1.5)`` a constant, ``t(expr)`` a cast and, for a vector
        type, ``t(a, b, ...)`` packs one value a lane. A single scalar fills all lanes.

        Raises
        ------
        TraceError
            If a constant does not fit or the number of lanes is wrong.
        TraceTypeError
            If a value is no scalar.
        """
        from tilelang.ir import values as construct  # built on this module

        return construct.make_value(self, values)


AnyDType: TypeAlias = "dtype | str | type | np.dtype | tvm_ffi.dtype | ir.PrimType | Any"


def _split_lanes(name: str) -> tuple[str, int]:
    """Split ``float16x4`` into ``("float16", 4)``; a name without lanes has 1."""
    head, sep, lanes = name.rpartition("x")
    return (head, int(lanes)) if sep and lanes.isdigit() else (name, 1)


def _storage_name(name: str) -> str:
    element, lanes = _split_lanes(name)
    row = _TABLE.get(element)
    storage = row.storage if row is not None and row.storage else element
    return storage if lanes == 1 else f"{storage}x{lanes}"


def _canonical_name(value: Any) -> str:
    """The TileLang name of any accepted spelling of a dtype."""
    if isinstance(value, str):
        text = str(value)
    elif isinstance(value, ir.PrimType):
        return str(_read_mark(value) or value.dtype)
    elif isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    elif type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        text = str(value).removeprefix("torch.")
    elif isinstance(value, np.dtype) or (isinstance(value, type) and hasattr(value, "dtype")):
        text = np.dtype(value).name
    else:
        raise TraceTypeError(
            f"expected a dtype, found {type(value).__name__} {value!r}", user_span()
        )
    if text in ALIASES:
        return ALIASES[text]
    element, lanes = _split_lanes(text)
    element = ALIASES.get(element, element)
    known = element in _TABLE and (lanes == 1 or _TABLE[element].vectors)
    if not known and text not in _OPAQUE:
        raise TraceTypeError(f"unknown dtype '{text}'", user_span())
    return element if lanes == 1 else f"{element}x{lanes}"


def _read_mark(prim_type: ir.PrimType) -> str | None:
    span = prim_type.span
    if span is None or not span.source_name.name.startswith(_MARK):
        return None
    return span.source_name.name.removeprefix(_MARK)


def declared_dtype(value: Any) -> dtype:
    """The dtype a buffer, region, variable or expression was declared with.

    Unlike ``buffer.dtype`` it tells ``tfloat32`` from ``float32`` and unpacked fp4 from ``uint8``.
    Loads are looked up in their buffer.
    """
    if isinstance(value, (ir.TensorRegion, ir.TensorLoad)):
        value = value.source
    ty = value.ty
    if isinstance(ty, T.BufferType):
        return dtype(ty.dtype)
    if isinstance(ty, ir.PointerType):
        return dtype("handle")
    return dtype(ty)


def get_tvm_dtype(value: AnyDType | ir.Type) -> dtype | ir.Type:
    """Normalise any accepted spelling to a :class:`dtype`; other ``ir.Type`` pass through.

    Raises
    ------
    TraceTypeError
        If ``value`` names no data type.
    """
    if isinstance(value, ir.Type) and not isinstance(value, ir.PrimType):
        return value
    return dtype(value)


def is_float4(value: AnyDType) -> bool:
    """Whether ``value`` is a 4-bit float, packed or in 8-bit slots."""
    return dtype(value).is_float4()


def is_float4_e2m1fn(value: AnyDType) -> bool:
    """Whether ``value`` is the packed 4-bit float."""
    return dtype(value).is_float4_e2m1fn()


def is_float4_e2m1_unpacked(value: AnyDType) -> bool:
    """Whether ``value`` is the 4-bit float in 8-bit slots."""
    return dtype(value).is_float4_e2m1_unpacked()


def is_f8f6f4_family(value: AnyDType) -> bool:
    """Whether ``value`` may be an operand of the Blackwell MMA of kind ``f8f6f4``.

    These are the OCP formats: fp8 e4m3 and e5m2, both fp6 types and fp4. Two different ones may
    be multiplied with each other.
    """
    return str(dtype(value)) in {
        "float8_e4m3",
        "float8_e4m3fn",
        "float8_e5m2",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
        "float4_e2m1_unpacked",
    }


def validate_gemm_ab_dtypes(
    a: AnyDType, b: AnyDType, *, a_in_tmem: bool = False, allow_f8f6f4_mixed: bool = False
) -> None:
    """Check the operand types of a matrix product.

    Parameters
    ----------
    a, b : AnyDType
        Element types of the two operands.
    a_in_tmem : bool
        Whether A lies in tensor memory, which holds no unpacked fp4.
    allow_f8f6f4_mixed : bool
        Whether two different types of the f8f6f4 family may be mixed.

    Raises
    ------
    TraceTypeError
        If the types differ and may not be mixed, or A cannot lie where it does.
    """
    left, right = dtype(a), dtype(b)
    if a_in_tmem and left.is_float4_e2m1_unpacked():
        raise TraceTypeError(
            f"gemm: A of dtype {left} must lie in shared memory, not tensor memory", user_span()
        )
    if left == right:
        return
    if allow_f8f6f4_mixed and is_f8f6f4_family(left) and is_f8f6f4_family(right):
        return
    raise TraceTypeError(
        f"gemm: operands A and B must have one dtype, found A {left} and B {right}", user_span()
    )
