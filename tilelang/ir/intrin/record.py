"""What a scalar intrinsic is: one frozen record, its IR op, its argument and type rules.

``record(*args)`` checks and converts the arguments and builds the call at the user's line;
``record.emit(*args)`` appends it to the traced kernel as a statement. Backends find the record of
a call with :func:`find` and ask it for its meaning instead of comparing names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceTypeError, UnsupportedError
from tilelang.ir import builder
from tilelang.ir.dtype import AnyDType, dtype
from tilelang.ir.expr import is_buffer
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, cast, element_type, match_types

__all__ = [
    "ALL",
    "NVIDIA",
    "PURE",
    "READ",
    "UPDATE",
    "WARP",
    "Array",
    "Intrinsic",
    "Kind",
    "Reference",
    "check_backend",
    "define",
    "find",
    "get",
    "intrinsics",
    "value_type",
]

#: Effect kinds of TVM (``TCallEffectKind``): how far passes may move, merge or drop a call.
PURE, READ, UPDATE = 1, 2, 3

#: Backends by name of their manifest. A set says who has (or will have) a lowering.
ALL = frozenset({"cpu", "cuda", "cutedsl", "metal", "rocm", "webgpu"})
WARP = frozenset({"cpu", "cuda", "cutedsl", "rocm"})
NVIDIA = frozenset({"cuda", "cutedsl"})

#: How an argument is checked and converted. ``float``, ``int`` and ``number`` arguments of one call
#: get one common type; ``predicate`` is an integer or bool; ``element`` is a load such as ``A[i]``;
#: ``pointer`` is an address, or a buffer or element whose address is taken; ``any`` is left alone.
Kind: TypeAlias = Literal[
    "float", "int", "number", "int32", "uint32", "predicate", "element", "pointer", "any", "text"
]
_MATCHED = ("float", "int", "number")
Array: TypeAlias = Any  # of numpy
Reference: TypeAlias = Callable[..., Array]


@dataclass(frozen=True)
class Intrinsic:
    """A scalar intrinsic of the language.

    Parameters
    ----------
    name : str
        Its name in the language, without ``T.``.
    op_name : str
        The IR op: ``tl.<name>`` for ours, ``tirx.<name>`` or ``prim.<name>`` for TVM's.
    args : tuple of Kind
        One kind an argument.
    result : str
        A dtype, or ``same`` (that of the first argument), ``given`` (chosen by the caller) or
        ``void`` (a statement).
    effect : int
        :data:`PURE`, :data:`READ` or :data:`UPDATE`.
    reference : callable, optional
        The meaning with numpy: ``reference(dtypes, *values)``. ``dtypes`` is the result dtype
        followed by those of the arguments. Float values come as float64, others in their own type;
        the result is float64 or integer and is rounded once by the caller. Values may be arrays of
        any one shape. For ``lanes`` intrinsics the last axis is the warp and the first value is
        the mask of active threads.
    optional : int
        How many trailing arguments may be left out.
    variadic : bool
        Whether further arguments of the last kind may follow.
    lanes : bool
        Whether threads take part together (vote, shuffle, barrier); needs the lane axis.
    asynchronous : bool
        Whether it starts or awaits work of an asynchronous unit: GPUs and the emulator only.
    backends : frozenset of str
        The backends that can lower it.
    """

    name: str
    op_name: str
    args: tuple[Kind, ...]
    result: str = "same"
    effect: int = PURE
    reference: Reference | None = None
    optional: int = 0
    variadic: bool = False
    lanes: bool = False
    asynchronous: bool = False
    backends: frozenset[str] = ALL
    op: ir.Op = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.op_name not in _op_names():
            ir.register_op_attr(self.op_name, "TCallEffectKind", self.effect)
            ir.register_op_attr(self.op_name, "TScriptPrinterName", self.name)
            _op_names().add(self.op_name)
        object.__setattr__(self, "op", ir.Op.get(self.op_name))

    @property
    def arity(self) -> int:
        """Number of arguments when none is left out."""
        return len(self.args)

    def __call__(self, *values: Any, dtype: AnyDType | None = None) -> ir.Call:
        """Build the call at the user's line.

        Raises
        ------
        TraceTypeError
            If the number, type or dtype of an argument is wrong.
        """
        arguments = self._convert(values)
        return ir.Call(self.op, arguments, ret_ty=self._type(arguments, dtype), span=user_span())

    def emit(self, *values: Any) -> None:
        """Append the call to the kernel being traced, as a statement.

        Raises
        ------
        TraceTypeError
            If the number, type or dtype of an argument is wrong.
        TraceError
            If no kernel is being traced.
        """
        active = builder.current(f"T.{self.name}")
        call = self(*values)
        active.emit(T.Evaluate(call, call.span))

    def _type(self, arguments: list[ir.Expr], given: AnyDType | None) -> Any:
        if self.result == "void":
            return "void"
        if self.result == "given":
            assert given is not None, f"{self.name}: the caller chooses the dtype"
            return value_type(given)
        if self.result == "handle":
            return value_type("handle")
        return arguments[0].ty if self.result == "same" else ir.PrimType(self.result)

    def _convert(self, values: tuple[Any, ...]) -> list[ir.Expr]:
        what = f"T.{self.name}"
        least = len(self.args) - self.optional
        if len(values) < least or (len(values) > len(self.args) and not self.variadic):
            expected = f"{least}" if not self.optional else f"{least} to {len(self.args)}"
            raise TraceTypeError(
                f"{what} takes {expected} arguments, found {len(values)}", user_span()
            )
        kinds = [self.args[min(i, len(self.args) - 1)] for i in range(len(values))]
        together = [i for i, kind in enumerate(kinds) if kind in _MATCHED]
        common = match_types([values[i] for i in together], what) if together else []
        matched = dict(zip(together, common, strict=True))
        return [
            _check(what, matched[i], kind) if i in matched else _argument(what, value, kind)
            for i, (value, kind) in enumerate(zip(values, kinds, strict=True))
        ]


def value_type(kind: AnyDType | ir.Type) -> ir.Type | str:
    """The IR type of a dtype, of ``handle`` (an untyped pointer), ``void`` or an ``ir.Type``."""
    if isinstance(kind, ir.Type) or kind == "void":
        return kind
    if kind == "handle":
        return ir.PointerType(ir.PrimType("void"))
    return dtype(kind).prim_type


_REGISTRY: dict[str, Intrinsic] = {}
_BY_NAME: dict[str, Intrinsic] = {}
_KNOWN_OPS: set[str] = set()


def _op_names() -> set[str]:
    if not _KNOWN_OPS:
        _KNOWN_OPS.update(ir.Op.list_op_names())
    return _KNOWN_OPS


def _check(what: str, expr: ir.Expr, kind: str) -> ir.Expr:
    found = element_type(expr)
    if kind == "float" and not found.is_float:
        raise TraceTypeError(
            f"{what} requires a floating-point argument, found {found}; cast it first", user_span()
        )
    if kind == "int" and not found.is_integer:
        raise TraceTypeError(f"{what} requires an integer argument, found {found}", user_span())
    if kind == "number" and not (found.is_integer or found.is_float or found.is_bool):
        raise TraceTypeError(f"{what} requires a number, found {found}", user_span())
    return expr


def _argument(what: str, value: Any, kind: str) -> ir.Expr:
    if kind == "text":
        return ir.StringImm(str(value))
    if kind == "pointer":
        return _pointer(what, value)
    if kind == "element":
        if isinstance(value, ir.TensorLoad):
            return value
        raise TraceTypeError(
            f"{what} requires an element such as A[i], found {type(value).__name__}", user_span()
        )
    if kind == "any" and isinstance(value, (ir.Expr, str)):
        return ir.StringImm(str(value)) if isinstance(value, str) else value
    expr = as_scalar(value, what)
    found = element_type(expr)
    if kind == "predicate" and not (found.is_integer or found.is_bool):
        raise TraceTypeError(
            f"{what} requires an integer or boolean predicate, found {found}", user_span()
        )
    if kind in ("int32", "uint32"):
        if not (found.is_integer or found.is_bool):
            raise TraceTypeError(f"{what} requires an integer, found {found}", user_span())
        return cast(expr, kind)
    return expr


def _pointer(what: str, value: Any) -> ir.Expr:
    if isinstance(value, ir.TensorRegion):
        value = T.BufferLoad(value.source, [r.min for r in value.region])
    if isinstance(value, ir.TensorLoad) or is_buffer(value):
        return T.address_of(value, user_span())
    if isinstance(value, ir.Expr) and isinstance(value.ty, ir.PointerType):
        return value
    raise TraceTypeError(
        f"{what} requires a pointer, a buffer or an element, found {type(value).__name__}",
        user_span(),
    )


def define(record: Intrinsic) -> Intrinsic:
    """Add a record to the table.

    Two names may share an op (``T.ballot`` and ``T.ballot_sync``); the first one describes it.
    """
    assert record.name not in _BY_NAME, f"intrinsic {record.name} is declared twice"
    _BY_NAME[record.name] = record
    _REGISTRY.setdefault(record.op_name, record)
    return record


def find(op: str | ir.Op | ir.Call | Any) -> Intrinsic | None:
    """The record of a language name, op name, op, or call; None if it is no intrinsic."""
    if isinstance(op, ir.Call):
        op = op.op
    name = op.name if isinstance(op, ir.Op) else op
    if not isinstance(name, str):
        return None
    return _REGISTRY.get(name) or _BY_NAME.get(name)


def get(name: str) -> Intrinsic:
    """The record of the language name ``name``; raises KeyError."""
    return _BY_NAME[name]


def intrinsics() -> Iterable[Intrinsic]:
    """All records, in order of declaration."""
    return tuple(_BY_NAME.values())


def check_backend(call: Any, backend: str) -> None:
    """Refuse a call that ``backend`` cannot lower.

    Raises
    ------
    UnsupportedError
        Names the intrinsic, the backend and the backends that have it.
    """
    record = find(call)
    if record is not None and backend not in record.backends:
        raise UnsupportedError.on_backend(
            f"T.{record.name}", backend, sorted(record.backends), getattr(call, "span", None)
        )
