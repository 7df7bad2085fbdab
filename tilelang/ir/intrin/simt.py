"""Operations of thread programs that lowering makes and the language does not offer.

Pointers are made by ``T.address_of`` of an element. All are statements but for the last two.
"""

from __future__ import annotations

import threading
from typing import Any

from tvm import ir
from tvm import tirx as T

__all__ = ["SIMT_OPS", "call", "expression", "op_name"]

_PREFIX = "tl."

#: Name to meaning. Sizes are constants in bytes.
SIMT_OPS: dict[str, str] = {
    "vec_copy": "(dst, src, bytes): one wide access of 1, 2, 4, 8, 16 or 32 bytes, both aligned",
    "vec_zero": "(dst, bytes): store zeros in one wide access",
    "cp_async": "(dst shared, src global, bytes 4|8|16, predicate): start an asynchronous copy; "
    "zeros where the predicate does not hold",
    "cp_async_commit": "(): close the group of copies started so far",
    "cp_async_wait": "(n): wait until at most n groups are pending, n constant",
    "ldmatrix": "(dst registers, src shared row of this lane, number 1|2|4, transposed 0|1)",
    "mma": "(row name, C registers, A registers, B registers): C += A * B over a warp",
    "mma_sp": "(row name, C registers, A registers, B registers, metadata register, selector): C "
    "+= A * B with a 2:4 sparse A",
    "atomic_add_vec": "(dst global, src registers, lanes): add neighbouring elements, each "
    "atomically; dst is aligned to them",
    "print_element": "(message, buffer, index, value): output of one element of a tile",
    "shared_arena": "(byte offset): expression, address in the dynamic shared memory",
    "block_thread": "(): expression, number of the thread in its block",
}


def op_name(name: str) -> str:
    """The IR op of ``name``; registered on first use."""
    full = _PREFIX + name
    with _LOCK:
        if full not in _KNOWN:
            _KNOWN.update(ir.Op.list_op_names())
        if full not in _KNOWN:
            ir.register_op_attr(full, "TCallEffectKind", 3)
            ir.register_op_attr(full, "TScriptPrinterName", name)
            _KNOWN.add(full)
    return full


_KNOWN: set[str] = set()
_LOCK = threading.Lock()  # kernels are compiled in parallel


def _argument(value: Any) -> ir.Expr:
    if isinstance(value, str):
        return ir.StringImm(value)
    return T.const(value, "int32") if isinstance(value, int) else value


def expression(name: str, *args: Any, result: Any, span: ir.Span | None = None) -> ir.Call:
    """A call of ``name`` with a value; ``result`` is its type."""
    assert name in SIMT_OPS, f"{name} is no operation of thread programs"
    return ir.Call(ir.Op.get(op_name(name)), [_argument(a) for a in args], ret_ty=result, span=span)


def call(name: str, *args: Any, span: ir.Span | None = None) -> T.Evaluate:
    """The statement ``name(*args)``; Python numbers and text become constants."""
    return T.Evaluate(expression(name, *args, result="void", span=span), span)
