"""Matrix instructions that a program gives by their PTX argument lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map

from tilelang.cuda.intrinsics.mma_rows import MMA_ROWS, MmaRow, mma_row
from tilelang.errors import LoweringError, UnsupportedError
from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.intrin import find, simt
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.launch import launch_of

__all__ = ["SPARSE_ROWS", "expand_matrix_calls"]

#: Instructions of ``tl/mma_sparse.h``; their k counts the zeros of A too.
SPARSE_ROWS = (
    "m16n8k32_f32_f16_f16_f32",
    "m16n8k32_f32_bf16_bf16_f32",
    "m16n8k16_f32_tf32_tf32_f32",
    "m16n8k64_s32_s8_s8_s32",
    "m16n8k64_s32_u8_u8_s32",
)
_SPARSE_ARCH = 80
_WARP = 32
_PTX_NAMES = {
    **dict.fromkeys(("fp16", "float16", "f16"), "f16"),
    **dict.fromkeys(("bf16", "bfloat16"), "bf16"),
    **dict.fromkeys(("tf32", "tfloat32"), "tf32"),
    **dict.fromkeys(("fp32", "float32", "f32"), "f32"),
    **dict.fromkeys(("fp64", "float64", "f64"), "f64"),
    **dict.fromkeys(("int32", "s32"), "s32"),
    **{f"{long}{bits}": f"{short}{bits}" for long, short in (("int", "s"), ("uint", "u"))
       for bits in (4, 8)},
    **{name: name for name in ("s4", "u4", "s8", "u8")},
    **dict.fromkeys(("e4m3", "e4m3fn", "float8_e4m3", "float8_e4m3fn"), "e4m3"),
    **dict.fromkeys(("e5m2", "float8_e5m2"), "e5m2"),
}  # fmt: skip


def expand_matrix_calls(func: T.PrimFunc, arch: int) -> T.PrimFunc:
    """Replace ``T.ptx_mma(_sp)``, ``T.ptx_ldmatrix``, ``T.mma_fill`` and ``T.mma_store``.

    Raises
    ------
    LoweringError
        If an argument list is malformed.
    UnsupportedError
        If ``sm_<arch>`` has no such instruction.

    Before: ``T.ptx_mma("float32", "m16n8k16", "row", "col", "fp16", "fp16", "fp32", A.data, 8,
    B.data, 4, C.data, 0, False)``. After: ``mma("m16n8k16_f32_f16_f16_f32", &C[0], &A[8], &B[4])``.
    """
    thread = launch_of(func).thread
    calls = _Calls(arch, thread % _WARP)
    rules: dict[str, Callable[[ir.Call], T.Stmt]] = {
        "ptx_mma": calls.mma,
        "ptx_mma_sp": calls.sparse_mma,
        "ptx_ldmatrix": calls.ldmatrix,
        "mma_fill": calls.fill,
        "mma_store": calls.store,
    }

    def expand(stmt: T.Evaluate) -> T.Stmt:
        record = find(stmt.value) if isinstance(stmt.value, ir.Call) else None
        rule = rules.get(record.name) if record is not None else None
        return stmt if rule is None else rule(stmt.value)

    return func.with_body(structural_map(func.body, (T.Evaluate, expand)))


class _Calls:
    """The rules; ``lane`` is the number of the thread in its warp."""

    def __init__(self, arch: int, lane: ir.Expr) -> None:
        self.arch, self.lane = arch, lane

    def mma(self, call: ir.Call) -> T.Stmt:
        """``(dtype, shape, layouts and types, A, offset, B, offset, C, offset, saturate, op)``."""
        args = _arguments(call, "T.ptx_mma", 13, 15)
        shape = _shape(call, args)
        if len(args) > 13 and const_int(args[13]) != 0:
            raise UnsupportedError("T.ptx_mma: saturating sums are not available", call.span)
        if len(args) > 14 and _text(call, args[14]):
            raise UnsupportedError(
                "T.ptx_mma: products of single bits are not available", call.span
            )
        a, b, c = (_ptx_name(call, arg) for arg in args[4:7])
        operands = [_element(call, args[i], args[i + 1]) for i in (11, 7, 9)]
        row = self._row(call, shape, c, *(_operand_name(name) for name in (a, b)))
        return simt.call("mma", row.name, *operands, span=call.span)

    def _row(self, call: ir.Call, shape: str, d: str, a: str, b: str) -> MmaRow:
        name = f"{shape}_{d}_{a}_{b}_{d}"
        fitting = [row for row in MMA_ROWS if (row.d, row.a, row.b) == (d, a, b)]
        if all(row.name != name for row in fitting):
            known = ", ".join(f"m{row.m}n{row.n}k{row.k}" for row in fitting) or "no shape"
            raise UnsupportedError(
                f"T.ptx_mma: there is no mma.sync {shape} of {a} and {b} with sums of {d}; there "
                f"is {known} of these types",
                call.span,
            )
        row = mma_row(name)
        if row.min_arch > self.arch:
            raise UnsupportedError(
                f"T.ptx_mma: mma.sync {shape} of {a} and {b} needs sm_{row.min_arch}, the target "
                f"is sm_{self.arch}",
                call.span,
            )
        return row

    def sparse_mma(self, call: ir.Call) -> T.Stmt:
        """As :meth:`mma` up to C, then metadata, offset, selector, saturate."""
        args = _arguments(call, "T.ptx_mma_sp", 16, 17)
        shape = _shape(call, args)
        a, b, c = (_ptx_name(call, arg) for arg in args[4:7])
        name = f"{shape}_{c}_{_operand_name(a)}_{_operand_name(b)}_{c}"
        if name not in SPARSE_ROWS:
            raise UnsupportedError(
                f"T.ptx_mma_sp: there is no mma.sp {name}; there is {', '.join(SPARSE_ROWS)}",
                call.span,
            )
        if self.arch < _SPARSE_ARCH:
            raise UnsupportedError(
                f"T.ptx_mma_sp: mma.sp needs sm_{_SPARSE_ARCH}, the target is sm_{self.arch}",
                call.span,
            )
        selector = const_int(args[15])
        if selector is None or not 0 <= selector <= 3:
            raise LoweringError(
                f"T.ptx_mma_sp: the selector must be a constant from 0 to 3, found {args[15]}",
                call.span,
            )
        if len(args) > 16 and const_int(args[16]) != 0:
            raise UnsupportedError("T.ptx_mma_sp: saturating sums are not available", call.span)
        operands = [_element(call, args[i], args[i + 1]) for i in (11, 7, 9, 13)]
        return simt.call("mma_sp", name, *operands, selector, span=call.span)

    def ldmatrix(self, call: ir.Call) -> T.Stmt:
        """``(dtype, transposed, number, ".b16", registers, offset, shared row, offset)``."""
        args = _arguments(call, "T.ptx_ldmatrix", 8, 8)
        transposed, number = const_int(args[1]), const_int(args[2])
        if number not in (1, 2, 4) or transposed is None:
            raise LoweringError(
                "T.ptx_ldmatrix: expected constants: transposed, then 1, 2 or 4 matrices; found "
                f"{args[1]} and {args[2]}",
                call.span,
            )
        if _text(call, args[3]) not in (".b16", "b16"):
            raise UnsupportedError(
                f"T.ptx_ldmatrix: elements are .b16, found {args[3].value!r}", call.span
            )
        registers, row = (_element(call, args[i], args[i + 1]) for i in (4, 6))
        return simt.call("ldmatrix", registers, row, number, int(transposed), span=call.span)

    def fill(self, call: ir.Call) -> T.Stmt:
        """``(dtype, number of registers, registers, offset)``: zeros."""
        args = _arguments(call, "T.mma_fill", 4, 4)
        size = const_int(args[1])
        if size is None:
            raise LoweringError(
                f"T.mma_fill: the number of registers must be a constant, found {args[1]}",
                call.span,
            )
        first = _element(call, args[2], args[3]).args[0]
        r = T.Var("r", "int32")
        zero = T.const(0, dtype_of(first.source))
        put = T.BufferStore(first.source, zero, _moved(first, r), call.span)
        return T.For(r, 0, size, T.ForKind.UNROLLED, put)

    def store(self, call: ir.Call) -> T.Stmt:
        """``(dtype, m, n, target, registers, offset, stride)``: a 16 x 16 (or 16 x 8) result."""
        args = _arguments(call, "T.mma_store", 7, 7)
        m, n = const_int(args[1]), const_int(args[2])
        if m != 16 or n not in (8, 16):
            raise UnsupportedError(
                "T.mma_store: results have 16 x 8 or 16 x 16 elements, found "
                f"{args[1]} x {args[2]}",
                call.span,
            )
        target = _element(call, args[3], T.const(0, "int32")).args[0]
        source = _element(call, args[4], args[5]).args[0]
        r = T.Var("r", "int32")
        row = self.lane // 4 + r % 4 // 2 * 8
        column = r // 4 * 8 + self.lane % 4 * 2 + r % 2
        value = T.BufferLoad(source.source, _moved(source, r))
        if dtype_of(value) != dtype_of(target.source):
            value = value.astype(dtype_of(target.source))
        at = _moved(target, row * args[6] + column)
        put = T.BufferStore(target.source, value, at, call.span)
        return unit(T.For(r, 0, m * n // _WARP, T.ForKind.UNROLLED, put), call.span)


def _arguments(call: ir.Call, what: str, least: int, most: int) -> Sequence[Any]:
    args = list(call.args)
    if not least <= len(args) <= most:
        expected = str(least) if least == most else f"{least} to {most}"
        raise LoweringError(f"{what} takes {expected} arguments, found {len(args)}", call.span)
    return args


def _shape(call: ir.Call, args: Sequence[Any]) -> str:
    """The shape, after the layouts were found right."""
    shape, a_layout, b_layout = (_text(call, arg) for arg in args[1:4])
    if (a_layout, b_layout) != ("row", "col"):
        raise UnsupportedError(
            f"{_name(call)}: matrix instructions take A row by row and B column by column, found "
            f"{a_layout!r} and {b_layout!r}; write 'row', 'col'",
            call.span,
        )
    return shape


def _text(call: ir.Call, node: Any) -> str:
    if not isinstance(node, ir.StringImm):
        raise LoweringError(f"{_name(call)}: expected text, found {node}", call.span)
    return str(node.value)


def _name(call: ir.Call) -> str:
    record = find(call)
    return f"T.{record.name}" if record is not None else str(call.op.name)


def _ptx_name(call: ir.Call, node: Any) -> str:
    given = _text(call, node)
    known = _PTX_NAMES.get(given)
    if known is None:
        raise LoweringError(f"{_name(call)}: unknown element type {given!r}", call.span)
    return known


def _operand_name(name: str) -> str:
    """float32 operands are read as tf32."""
    return "tf32" if name == "f32" else name


def _element(call: ir.Call, pointer: Any, offset: Any) -> ir.Call:
    """The address of an element ``offset`` elements behind ``pointer``."""
    node = pointer
    shift = offset
    while isinstance(node, ir.Call):
        name = node.op.name if isinstance(node.op, ir.Op) else ""
        if name == "tl.access_ptr":
            shift = shift + node.args[1]
        elif name not in ("tirx.address_of", "tirx.buffer_data"):
            break
        node = node.args[0]
    if is_buffer(node):
        node = T.BufferLoad(node, [T.const(0, "int32")] * len(node.shape))
    if not isinstance(node, ir.TensorLoad):
        raise LoweringError(
            f"{_name(call)}: expected a pointer into a buffer (buffer.data, T.address_of, "
            f"T.access_ptr), found {pointer}",
            call.span,
        )
    return T.address_of(T.BufferLoad(node.source, _moved(node, shift)), call.span)


def _moved(load: ir.TensorLoad, offset: Any) -> list[Any]:
    """Indices of the element ``offset`` elements behind that of ``load``, in row-major order."""
    indices = list(load.indices)
    if const_int(offset) == 0:
        return indices
    if len(indices) == 1:
        return [indices[0] + offset]
    flat: Any = indices[0]
    for index, extent in zip(indices[1:], load.source.shape[1:], strict=True):
        flat = flat * extent + index
    flat = flat + offset
    result = []
    for extent in reversed(load.source.shape[1:]):
        result.append(flat % extent)
        flat = flat // extent
    return [flat, *reversed(result)]
