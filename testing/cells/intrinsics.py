"""Cells of scalar intrinsics, made from their records: argument kinds, result, lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tilelang.language as T
from testing.cells.cell import EXACT, FLOATS, INTEGERS, Cell, Comparison, Operand, Sum, Ulp
from tilelang.interpreter.accuracy import ULP
from tilelang.ir.intrin import Intrinsic, intrinsics

__all__ = ["cpu_intrinsics", "intrinsic_cells"]

_COUNT = 96  # elements; three warps, or a partial one for odd counts
_DTYPES = {
    "float": FLOATS,
    "int": INTEGERS,
    "number": ("float16", "float32", "int8", "int32", "int64"),
}


def cpu_intrinsics() -> list[Intrinsic]:
    """The records the CPU lists."""
    return [record for record in intrinsics() if "cpu" in record.backends]


def intrinsic_cells(record: Intrinsic) -> Iterator[Cell]:
    """The cells of one intrinsic."""
    special = _SPECIAL.get(record.name)
    if special is not None:
        yield from special(record)
    elif record.lanes:
        yield from _lane_cells(record)
    else:
        yield from _elementwise_cells(record)


def _comparison(record: Intrinsic, dtype: str) -> Comparison:
    if record.name == "ieee_frsqrt" and dtype == "float64":
        return Ulp("rsqrt")  # correctly rounded up to float32
    if record.name in ULP and record.result == "same":
        return Ulp(record.name)
    return EXACT


def _dtypes(record: Intrinsic) -> tuple[str, ...]:
    """The dtypes that the matched arguments of a record take."""
    for kind in record.args:
        if kind in _DTYPES:
            return _DTYPES[kind]
    return ("bool", "int32") if "predicate" in record.args else ("int32",)


def _slow(record: Intrinsic, dtype: str) -> bool:
    return dtype not in ("float32", "float16", "int32", "uint8", "bool")


def _argument(kind: str, dtype: str) -> Operand:
    """The operand for an argument of ``kind``, when matched arguments are of ``dtype``."""
    if kind in ("float", "number", "int", "any", "element", "predicate"):
        return Operand((_COUNT,), dtype, "mixed")
    return Operand((_COUNT,), kind, "small")


def _result_dtype(record: Intrinsic, dtype: str) -> str:
    if record.result == "same":
        return dtype if record.args[0] not in ("uint32", "int32") else record.args[0]
    return record.result


def _elementwise_cells(record: Intrinsic) -> Iterator[Cell]:
    for dtype in _dtypes(record):
        operands = [_argument(kind, dtype) for kind in record.args]
        result = _result_dtype(record, dtype)

        @T.macro
        def body(bx, *tensors, record=record):
            for i in T.Parallel(_COUNT):
                tensors[-1][i] = record(*[tensor[i] for tensor in tensors[:-1]])

        yield Cell(
            record.name,
            dtype,
            (*operands, Operand((_COUNT,), result, "zero")),
            body,
            _comparison(record, dtype),
            slow=_slow(record, dtype),
        )


# --- threads ------------------------------------------------------------------------------------


def _lane_cells(record: Intrinsic) -> Iterator[Cell]:
    """One value a thread, for whole and partial warps, with all threads and with some."""
    for dtype in _dtypes(record):
        for threads in (96, 40):
            operands = [
                Operand((threads,), dtype, "small" if "sum" in record.name else "mixed")
                for kind in record.args
                if kind in (*_DTYPES, "any", "predicate")
            ]
            result = _result_dtype(record, dtype)

            @T.macro
            def body(bx, *tensors, record=record):
                tx = T.get_thread_binding()
                if _mask_of(record) >> (tx % 32) & 1 == 1:
                    tensors[-1][0, tx] = record(*_lane_arguments(record, tensors, tx))
                if tx % 4 < 2 and _mask_of(record) == _FULL:
                    tensors[-1][1, tx] = record(*_lane_arguments(record, tensors, tx))

            yield Cell(
                record.name,
                f"{dtype}-{threads}",
                (*operands, Operand((2, threads), result, "zero")),
                body,
                threads=threads,
                slow=_slow(record, dtype),
            )


def _lane_arguments(record: Intrinsic, tensors: Any, tx: Any) -> list[Any]:
    """Values from the tensors; amounts that stay in the group; widths and masks as constants."""
    values = iter(tensors[:-1])
    fixed = _LANE_CONSTANTS.get(record.name, ())
    matched = [next(values)[tx] for kind in record.args if kind in (*_DTYPES, "any", "predicate")]
    return [*matched, *fixed]


_FULL = 0xFFFFFFFF


def _mask_of(record: Intrinsic) -> int:
    """The lanes that a call names; only they may make it."""
    fixed = _LANE_CONSTANTS.get(record.name, ())
    return fixed[-1] if record.name.endswith("_sync") and fixed else _FULL


_LANE_CONSTANTS: dict[str, tuple[Any, ...]] = {
    # Lanes that take part in the second call read from such lanes only.
    "shfl_sync": (1, 32, _FULL),
    "shfl_xor": (1, 32, _FULL),
    "shfl_up": (4, 8, _FULL),
    "shfl_down": (4, 16, _FULL),
    "any_sync": (0x0F0FFFFF,),
    "all_sync": (0x0F0FFFFF,),
    "ballot_sync": (0x0F0FFFFF,),
    "match_any_sync": (_FULL,),
    "match_all_sync": (0x00FF00FF,),
    "shuffle_elect": (32,),
    "get_lane_idx": (16,),
    "get_warp_group_idx": (32, 2),
}


def _block_votes(record: Intrinsic) -> Iterator[Cell]:
    for threads in (96, 40):

        @T.macro
        def body(bx, A, B, record=record):
            tx = T.get_thread_binding()
            B[tx] = record(A[tx])

        operands = (Operand((threads,), "int32", "small"), Operand((threads,), "int32", "zero"))
        yield Cell(record.name, str(threads), operands, body, threads=threads)


def _barriers(record: Intrinsic) -> Iterator[Cell]:
    @T.macro
    def body(bx, A, B):
        tx = T.get_thread_binding()
        tile = T.alloc_shared((64,), "int32")
        tile[tx] = A[tx]
        record.emit()
        B[tx] = tile[tx ^ 1]

    operands = (Operand((64,), "int32"), Operand((64,), "int32", "zero"))
    yield Cell(record.name, "exchange", operands, body, threads=64)


# --- intrinsics with arguments of their own -----------------------------------------------------


def _one(
    record: Intrinsic,
    name: str,
    operands: tuple[Operand, ...],
    body: Any,
    compare: Comparison = EXACT,
) -> Cell:
    return Cell(record.name, name, operands, body, compare)


def _vector_pairs(record: Intrinsic) -> Iterator[Cell]:
    """Packed pairs: vectors of two, loaded and stored through views."""
    for dtype in ("float16", "bfloat16", "float32"):

        @T.macro
        def body(bx, *tensors, record=record, dtype=dtype):
            pairs = [T.view(tensor, dtype=f"{dtype}x2") for tensor in tensors]
            for i in T.serial(_COUNT // 2):
                pairs[-1][i] = record(*[pair[i] for pair in pairs[:-1]])

        # A multiply-add may round once or twice.
        compare, data = (Sum(2, 100.0), "unit") if record.name == "fma2" else (EXACT, "mixed")
        inputs = tuple(Operand((_COUNT,), dtype, data) for _ in record.args)
        yield _one(record, dtype, (*inputs, Operand((_COUNT,), dtype, "zero")), body, compare)


def _bits_of(record: Intrinsic) -> Iterator[Cell]:
    pairs = [("float32", "int32"), ("uint16", "float16"), ("float64", "uint64")]
    pairs += [("bfloat16", "int16"), ("float8_e4m3fn", "uint8"), ("int8", "uint8")]
    for source, target in pairs:

        @T.macro
        def body(bx, A, B, target=target):
            for i in T.Parallel(_COUNT):
                B[i] = record(A[i], dtype=target)

        operands = (Operand((_COUNT,), source), Operand((_COUNT,), target, "zero"))
        yield _one(record, f"{source}-{target}", operands, body)


def _tfloat32(record: Intrinsic) -> Iterator[Cell]:
    @T.macro
    def body(bx, A, B):
        for i in T.Parallel(_COUNT):
            B[i] = record(A[i], dtype=T.tfloat32)

    operands = (Operand((_COUNT,), "float32", "mixed"), Operand((_COUNT,), "float32", "zero"))
    yield _one(record, "float32", operands, body)


def _find_nth(record: Intrinsic) -> Iterator[Cell]:
    @T.macro
    def body(bx, A, B):
        for i, j in T.Parallel(12, 8):
            B[i, j] = record(A[i], i * 2 % 32, j - 4)

    operands = (Operand((12,), "uint32"), Operand((12, 8), "int32", "zero"))
    yield _one(record, "positions", operands, body)


def _fixed_point(record: Intrinsic) -> Iterator[Cell]:
    @T.macro
    def plain(bx, A, B, C):
        for i in T.Parallel(_COUNT):
            C[i] = record(A[i] >> 8, B[i], 31, i % 12 - 6)

    @T.macro
    def per_axis(bx, A, B, C):
        for i in T.Parallel(_COUNT):
            C[i] = record(A[i] >> 8, B[i], i % 4, i % 5, 31, i % 2, i // 2 % 2)

    operands = (
        Operand((_COUNT,), "int32"),
        Operand((_COUNT,), "int32"),
        Operand((_COUNT,), "int32", "zero"),
    )
    yield _one(record, "q31", operands, per_axis if record.name.endswith("axis") else plain)


def _selection(record: Intrinsic) -> Iterator[Cell]:
    for dtype in ("float32", "bfloat16", "int8", "bool"):

        @T.macro
        def body(bx, A, B, C, dtype=dtype):
            for i in T.Parallel(_COUNT):
                # Only the chosen side is evaluated: the other index lies outside.
                C[i] = record(B[i] > 0, A[i], A[T.max(_COUNT - 1 - i, 0)], dtype=dtype)

        operands = (
            Operand((_COUNT,), dtype),
            Operand((_COUNT,), "int32"),
            Operand((_COUNT,), dtype, "zero"),
        )
        yield _one(record, dtype, operands, body)


def _likely(record: Intrinsic) -> Iterator[Cell]:
    @T.macro
    def body(bx, A, B):
        for i in T.serial(_COUNT):
            if record(A[i] > 0):
                B[i] = A[i]

    operands = (Operand((_COUNT,), "int32"), Operand((_COUNT,), "int32", "zero"))
    yield _one(record, "branch", operands, body)


def _vector_parts(record: Intrinsic) -> Iterator[Cell]:
    """Halves of vectors of four, and vectors of four from halves."""
    split = record.name != "vectorcombine"

    @T.macro
    def body(bx, A, B):
        if split:
            whole, halves = T.view(A, dtype="float32x4"), T.view(B, dtype="float32x2")
            for i in T.serial(8):
                halves[i] = record(whole[i], dtype="float32x2")
        else:
            halves, whole = T.view(A, dtype="float32x2"), T.view(B, dtype="float32x4")
            for i in T.serial(8):
                whole[i] = record(halves[2 * i + 1], halves[i], dtype="float32x4")

    sizes = (32, 16) if split else (32, 32)
    operands = (Operand(sizes[:1], "float32"), Operand(sizes[1:], "float32", "zero"))
    yield _one(record, "float32", operands, body)


def _cached_read(record: Intrinsic) -> Iterator[Cell]:
    for dtype in ("float32", "bfloat16", "int8", "bool"):

        @T.macro
        def body(bx, A, B):
            for i in T.Parallel(_COUNT):
                B[i] = record(A[_COUNT - i])  # the first one lies outside

        operands = (Operand((_COUNT,), dtype), Operand((_COUNT,), dtype))
        yield _one(record, dtype, operands, body)


def _facts(record: Intrinsic) -> Iterator[Cell]:
    @T.macro
    def body(bx, A, B):
        for i in T.serial(8):
            T.assume(A[i] <= 8)
            T.device_assert(A[i] >= -8, "too small")
            B[i] = A[i]

    yield _one(
        record, "holds", (Operand((8,), "int32", "small"), Operand((8,), "int32", "zero")), body
    )


def _printing(record: Intrinsic) -> Iterator[Cell]:
    @T.macro
    def body(bx, A, B):
        T.print("text")
        T.print(A[1], msg="value")
        T.print(A)
        T.copy(A, B)

    yield _one(record, "all", (Operand((4,), "int32"), Operand((4,), "int32", "zero")), body)


def _pointers(record: Intrinsic) -> Iterator[Cell]:
    """An address is used by reading through it, and is never null."""

    @T.macro
    def body(bx, A, B, C):
        where = T.access_ptr(A[2], "r") if record.name == "access_ptr" else T.address_of(A[2])
        seen = T.make_tensor(where, (4,), "int32")
        for i in T.serial(4):
            B[i] = seen[i]
        C[0] = T.isnullptr(where)

    operands = (
        Operand((8,), "int32"),
        Operand((4,), "int32", "zero"),
        Operand((1,), "bool", "zero"),
    )
    yield _one(record, "element", operands, body)


def _foreign(record: Intrinsic) -> Iterator[Cell]:
    @T.macro
    def body(bx, A, B):
        call = T.call_extern if record.name == "call_extern" else T.call_pure_extern
        for i in T.Parallel(_COUNT):
            B[i] = call("float32", "fabsf", A[i]) + 1

    operands = (Operand((_COUNT,), "float32", "unit"), Operand((_COUNT,), "float32", "zero"))
    yield _one(record, "fabsf", operands, body)


_SPECIAL: dict[str, Callable[[Intrinsic], Iterator[Cell]]] = {
    **dict.fromkeys(("add2", "sub2", "mul2", "fma2", "max2", "min2", "abs2"), _vector_pairs),
    **dict.fromkeys(("vectorlow", "vectorhigh", "vectorcombine"), _vector_parts),
    **dict.fromkeys(("q_multiply_shift", "q_multiply_shift_per_axis"), _fixed_point),
    **dict.fromkeys(("syncthreads_count", "syncthreads_and", "syncthreads_or"), _block_votes),
    **dict.fromkeys(("sync_threads", "sync_warp"), _barriers),
    **dict.fromkeys(("address_of", "access_ptr", "isnullptr"), _pointers),
    **dict.fromkeys(("assume", "device_assert"), _facts),
    **dict.fromkeys(("call_extern", "call_pure_extern"), _foreign),
    "__ldg": _cached_read,
    "reinterpret": _bits_of,
    "round_tfloat32": _tfloat32,
    "__fns": _find_nth,
    "if_then_else": _selection,
    "likely": _likely,
    "print": _printing,
}
