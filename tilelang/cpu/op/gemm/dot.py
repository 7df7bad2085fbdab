"""Instructions that multiply short numbers and add neighbouring products to a wide accumulator.

A *word* is 32 bits: ``group`` elements of consecutive k. An instruction multiplies one word of A
with a vector of words of B, a word for each column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import tvm
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.cpu.features import Features

__all__ = ["Dot", "dot_instruction"]

_SIGN_BITS = -0x7F7F7F80  # 128 in every byte


@dataclass(frozen=True)
class Dot:
    """One instruction.

    Parameters
    ----------
    group : int
        Elements in a word.
    lanes : int
        Words in a vector.
    multiply : callable
        The new accumulators from the old ones, a word of A and the vector of B.
    bias : callable or None
        For an instruction that wants A + 128, that is A with its sign bits flipped: adds to the
        accumulators what they get too much by a vector of B.
    source : str
        LLVM IR of a function that ``multiply`` calls, or "".
    """

    group: int
    lanes: int
    multiply: Callable[[ir.Expr, ir.Expr, ir.Expr], ir.Expr]
    bias: Callable[[ir.Expr, ir.Expr], ir.Expr] | None = None
    source: str = ""


def dot_instruction(a: str, b: str, accumulator: str, features: Features) -> Dot | None:
    """The instruction for operands of dtypes ``a`` and ``b``, None if the CPU has none."""
    if a == b == "bfloat16" and accumulator == "float32":
        return _bfloat16(features)
    if {a, b} <= {"int8", "uint8"} and accumulator == "int32":
        return _bytes(a, b, features)
    return None


def _bits(value: ir.Expr, dtype: str) -> ir.Expr:
    return ir.Call(ir.Op.get("tirx.reinterpret"), [value], ret_ty=ir.PrimType(dtype))


def _bfloat16(features: Features) -> Dot | None:
    """Pairs of bfloat16. Subnormal operands and results count as 0."""
    if not (features.has("avx512bf16") and features.vector_bytes == 64):
        return None
    name, lanes = "tl_dot_bf16", 16

    def multiply(acc: ir.Expr, word: ir.Expr, vector: ir.Expr) -> ir.Expr:
        operands = [acc, _bits(vector, f"int32x{lanes}"), prim.Broadcast(word, lanes)]
        return ir.Call(
            ir.Op.get("tirx.call_pure_extern"),
            [ir.StringImm(name), *operands],
            ret_ty=ir.PrimType(f"float32x{lanes}"),
        )

    # TVM cannot name LLVM's type bfloat, which the intrinsic takes.
    floats, words, pairs = f"<{lanes} x float>", f"<{lanes} x i32>", f"<{2 * lanes} x bfloat>"
    intrinsic = f"{floats} @llvm.x86.avx512bf16.dpbf16ps.512"
    source = f"""
declare {intrinsic}({floats}, {pairs}, {pairs})
define {floats} @{name}({floats} %c, {words} %a, {words} %b) {{
  %x = bitcast {words} %a to {pairs}
  %y = bitcast {words} %b to {pairs}
  %r = call {intrinsic}({floats} %c, {pairs} %x, {pairs} %y)
  ret {floats} %r
}}
"""
    return Dot(2, lanes, multiply, source=source)


def _bytes(a: str, b: str, features: Features) -> Dot | None:
    """Four bytes, unsigned times signed, exact modulo 2^32.

    Two signed operands: A is taken as A + 128, which flips its sign bits, and 128 times the sums
    of B's columns are subtracted. Two unsigned operands have no instruction here.
    """
    if features.vector_bytes == 64 and features.has("avx512vnni"):
        bits = 512
    elif features.vector_bytes == 32 and features.has("avxvnni"):
        bits = 256
    else:
        return None
    if a == b == "uint8":
        return None
    lanes = bits // 32

    def dot(acc: ir.Expr, unsigned: ir.Expr, signed: ir.Expr) -> ir.Expr:
        operands = [_bits(value, f"int8x{4 * lanes}") for value in (unsigned, signed)]
        return ir.Call(
            ir.Op.get("tirx.call_llvm_pure_intrin"),
            [_intrinsic(f"llvm.x86.avx512.vpdpbusd.{bits}"), acc, *operands],
            ret_ty=ir.PrimType(f"int32x{lanes}"),
        )

    def multiply(acc: ir.Expr, word: ir.Expr, vector: ir.Expr) -> ir.Expr:
        words = prim.Broadcast(word, lanes)
        return dot(acc, vector, words) if b == "uint8" else dot(acc, words, vector)

    shift = prim.Broadcast(T.const(_SIGN_BITS, "int32"), lanes)
    bias = (lambda acc, vector: dot(acc, shift, vector)) if a == b else None
    return Dot(4, lanes, multiply, bias)


@cache
def _intrinsic(name: str) -> ir.Expr:
    number = tvm.get_global_func("target.llvm_lookup_intrinsic_id")(name)
    assert number, f"LLVM has no {name}"
    return prim.IntImm("uint32", number)
