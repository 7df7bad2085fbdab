"""How a tile op is declared, built and decoded.

A tile op is one :class:`TileOp` record in one file of this package: a frozen attribute class
(constants only), named operands (regions and scalar expressions), its checks, and its reference
meaning. In the IR it is ``Evaluate(Call("tl.tileop.<name>", operands, attrs))``.

Operands may be optional. Calls cannot hold a null argument, so the attributes carry a bit mask of
the operands present; :meth:`TileOp.call` and :meth:`TileCall.of` are the only code that knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tvm import ir
from tvm import tirx as T
from tvm_ffi.dataclasses import py_class

from tilelang.ir import builder

__all__ = ["Operand", "TileAttrs", "TileCall", "TileOp", "find_tile_op", "tile_ops"]

Access = Literal["r", "w", "rw"]
_PREFIX = "tl.tileop."
_REGISTRY: dict[str, TileOp] = {}


@py_class("tl.op.TileAttrs")
class TileAttrs(ir.Attrs):
    """Base of the attribute records. ``present`` has bit i set if operand i is there."""

    present: int = 0


@dataclass(frozen=True)
class Operand:
    """A named operand: how it is accessed and whether it is a region or a scalar expression."""

    name: str
    access: Access
    kind: Literal["region", "expr"] = "region"
    optional: bool = False


@dataclass(frozen=True)
class TileOp:
    """A tile op: its name, attribute record, operands and reference meaning.

    Parameters
    ----------
    name : str
        Name without prefix, also the name of the file of each backend's body.
    attrs : type
        Subclass of :class:`TileAttrs`.
    operands : tuple of Operand
        In the order of the call arguments.
    reference : callable
        ``reference(ctx, call)``: the meaning with numpy, run by the interpreter. ``ctx`` offers
        ``read(region)``, ``write(region, array)``, ``scalar(expr)``, ``dtype(region)`` and
        ``cast(array, dtype)``.
    """

    name: str
    attrs: type[TileAttrs]
    operands: tuple[Operand, ...]
    reference: Callable[[Any, TileCall], None]
    op: ir.Op = field(init=False, repr=False)

    def __post_init__(self) -> None:
        full_name = _PREFIX + self.name
        if full_name not in set(ir.Op.list_op_names()):
            ir.register_op_attr(full_name, "TCallEffectKind", 3)
            ir.register_op_attr(full_name, "TScriptPrinterName", f"tile_{self.name}")
        object.__setattr__(self, "op", ir.Op.get(full_name))
        _REGISTRY[full_name] = self

    def call(
        self, span: ir.Span | None = None, attrs: dict[str, Any] | None = None, **operands: Any
    ) -> T.Evaluate:
        """Build the statement from named operands (None = absent) and attribute values."""
        args, present = [], 0
        for position, operand in enumerate(self.operands):
            value = operands.pop(operand.name, None)
            if value is None:
                assert operand.optional, f"{self.name}: operand {operand.name} is required"
                continue
            args.append(value)
            present |= 1 << position
        assert not operands, f"{self.name}: unknown operands {sorted(operands)}"
        record = self.attrs(present=present, **(attrs or {}))
        return T.Evaluate(ir.Call(self.op, args, attrs=record, ret_ty="void", span=span), span)

    def emit(self, attrs: dict[str, Any] | None = None, **operands: Any) -> None:
        """Build the statement at the user's line and append it to the kernel being traced."""
        builder.emit(self.call(builder.user_span(), attrs, **operands))


@dataclass(frozen=True)
class TileCall:
    """A decoded tile-op statement."""

    op: TileOp
    attrs: Any
    operands: dict[str, ir.Expr]
    span: ir.Span | None

    @staticmethod
    def of(node: Any) -> TileCall | None:
        """Decode an Evaluate or Call, or return None if it is not a tile op."""
        call = node.value if isinstance(node, T.Evaluate) else node
        if not isinstance(call, ir.Call) or not isinstance(call.op, ir.Op):
            return None
        op = _REGISTRY.get(call.op.name)
        if op is None:
            return None
        present = call.attrs.present
        there = [o.name for i, o in enumerate(op.operands) if present >> i & 1]
        span = node.span if node.span is not None else call.span
        return TileCall(op, call.attrs, dict(zip(there, call.args, strict=True)), span)

    @property
    def name(self) -> str:
        """The op's name without prefix."""
        return self.op.name

    def operand(self, name: str) -> Any:
        """The operand ``name``; raises KeyError if it is absent."""
        return self.operands[name]

    def get(self, name: str) -> Any:
        """The operand ``name``, or None if it is absent."""
        return self.operands.get(name)

    def regions(self, access: str) -> list[ir.TensorRegion]:
        """The region operands read (``"r"``) or written (``"w"``); scalars are left out."""
        values = [
            self.get(operand.name)
            for operand in self.op.operands
            if operand.kind == "region" and access in operand.access
        ]
        return [value for value in values if isinstance(value, ir.TensorRegion)]


def find_tile_op(name: str) -> TileOp:
    """The record of tile op ``name``; raises KeyError."""
    return _REGISTRY[_PREFIX + name]


def tile_ops() -> Sequence[TileOp]:
    """All declared tile ops, in order of declaration."""
    return tuple(_REGISTRY.values())
