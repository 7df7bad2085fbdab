"""Integers: arithmetic modulo 2^width, division that never traps, shifts by any amount, bit counts.

TVM marks ``+ - *`` of 32- and 64-bit integers as never overflowing when it emits LLVM IR (unsigned
ones too), so wrapping operations are computed in twice the width and cut. LLVM folds that back to
one instruction. C defines unsigned arithmetic to wrap, which serves kind ``c``.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import ir
from tvm.ir import prim

from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, select
from tilelang.transform.numerics.dtypes import width

__all__ = ["add", "clz", "multiply", "negate", "popcount", "subtract", "width"]

Binary = Callable[[Value, Value], Value]


def _signed(x: Value) -> Value:
    return x.reinterpret(x.dtype.removeprefix("u"))


def _unsigned(x: Value) -> Value:
    return x if x.dtype.startswith("u") else x.reinterpret(f"u{x.dtype}")


def _in_double_width(node: Binary, a: Value, b: Value) -> Value:
    bits = width(a.dtype)
    if bits < 32:  # no overflow flags at these widths
        return node(a, b)
    wide = f"int{2 * bits}"
    return node(_signed(a).to(wide), _signed(b).to(wide)).to(f"int{bits}").reinterpret(a.dtype)


def _in_unsigned(node: Binary, a: Value, b: Value) -> Value:
    # Narrow operands promote to int, where a product of two uint16 can overflow.
    wide = f"uint{max(32, width(a.dtype))}"
    if wide == f"uint{width(a.dtype)}":
        return node(_unsigned(a), _unsigned(b)).reinterpret(a.dtype)
    return node(a.to(wide), b.to(wide)).to(a.dtype)


def _wrapping(name: str, node: Binary) -> Binary:
    def rule(a: Value, b: Value) -> Value:
        return node(a, b) if a.dtype.startswith("float") else _in_double_width(node, a, b)

    def rule_c(a: Value, b: Value) -> Value:
        return node(a, b) if a.dtype.startswith("float") else _in_unsigned(node, a, b)

    numeric(name, kind="c")(rule_c)
    return numeric(name)(rule)


add = _wrapping("add", lambda a, b: a + b)
subtract = _wrapping("sub", lambda a, b: a - b)
multiply = _wrapping("mul", lambda a, b: a * b)


def negate(x: Value) -> Value:
    """``-x`` modulo 2^width, on any target: ``~x + 1`` cannot be had without overflow flags."""
    return subtract(x.const(0), x)


def _number(x: Value) -> int | None:
    """The value of an integer constant."""
    if x.args:
        return None
    expr: ir.Expr = x.build()
    expr = expr.value if isinstance(expr, prim.Broadcast) else expr
    return int(expr.value) if isinstance(expr, prim.IntImm) else None


def _divisor(b: Value) -> Value:
    """``b`` where dividing by it is defined for every dividend, else 1."""
    number = _number(b)
    if number is not None and number > 0:
        return b
    unsafe = b.eq(0) if b.dtype.startswith("u") or width(b.dtype) < 32 else b.eq(0) | b.eq(-1)
    return select(unsafe, 1, b)


def _patch_quotient(quotient: Value, a: Value, b: Value) -> Value:
    """The quotient of ``a`` by the original divisor, given that by the safe one."""
    number = _number(b)
    if number is not None and number > 0:
        return quotient
    if not b.dtype.startswith("u") and width(b.dtype) >= 32:
        quotient = select(b.eq(-1), negate(a), quotient)
    return select(b.eq(0), 0, quotient)


def _division(rule: Binary) -> Binary:
    """Narrow operands divide in int32, where the quotient cannot overflow."""

    def widened(a: Value, b: Value) -> Value:
        if width(a.dtype) >= 32:
            return rule(a, b)
        wide = "uint32" if a.dtype.startswith("u") else "int32"
        number = _number(b)
        divisor = b.to(wide) if number is None else b.const(number, wide)
        return rule(a.to(wide), divisor).to(a.dtype)

    return widened


@numeric("truncdiv")
@_division
def truncdiv(a: Value, b: Value) -> Value:
    """Quotient toward zero; 0 for ``b == 0``, the smallest integer by -1 wraps."""
    return _patch_quotient(a / _divisor(b), a, b)


@numeric("truncmod")
@_division
def truncmod(a: Value, b: Value) -> Value:
    """Remainder with the sign of ``a``; 0 for ``b == 0``."""
    return a % _divisor(b)


@numeric("floordiv")
@_division
def floordiv(a: Value, b: Value) -> Value:
    """Quotient rounded down; 0 for ``b == 0``, the smallest integer by -1 wraps."""
    if a.dtype.startswith("u"):
        return _patch_quotient(a / _divisor(b), a, b)
    number = _number(b)
    if number is not None and number > 0:
        if number & (number - 1) == 0:
            return a >> (number.bit_length() - 1)
        sign = a >> (width(a.dtype) - 1)
        return ((a ^ sign) / b) ^ sign  # floor(a / b) = ~(~a / b) for a < 0
    divisor = _divisor(b)
    quotient, remainder = a / divisor, a % divisor
    below = remainder.ne(0) & ((remainder ^ divisor) < 0)
    return _patch_quotient(select(below, quotient - 1, quotient), a, b)


@numeric("floormod")
@_division
def floormod(a: Value, b: Value) -> Value:
    """Remainder with the sign of ``b``; 0 for ``b == 0``."""
    if a.dtype.startswith("u"):
        return a % _divisor(b)
    number = _number(b)
    if number is not None and number > 0 and number & (number - 1) == 0:
        return a & (number - 1)
    divisor = _divisor(b)
    remainder = a % divisor
    return select(remainder.ne(0) & ((remainder ^ divisor) < 0), remainder + divisor, remainder)


def _shift(rule: Callable[[Value, Value, int | None], Value]) -> Binary:
    """Narrow operands shift in 32 bits; C would promote them anyway."""

    def widened(a: Value, count: Value) -> Value:
        number = _number(count)
        if width(a.dtype) >= 32:
            return rule(a, count, number)
        wide = "uint32" if a.dtype.startswith("u") else "int32"
        narrow = width(a.dtype)
        # Counts from `narrow` on must not bring back bits above it; 31 empties or signs all.
        safe = select(_unsigned(count) < narrow, count.to(wide), count.const(31, wide))
        if number is not None and _within(number, narrow):
            return rule(a.to(wide), count.const(number, wide), number).to(a.dtype)
        return rule(a.to(wide), safe, None).to(a.dtype)

    return widened


def _within(number: int | None, limit: int) -> bool:
    return number is not None and 0 <= number < limit


@numeric("shl")
@_shift
def shift_left(a: Value, count: Value, number: int | None) -> Value:
    """``a << count``; 0 for counts below 0 or from the width on."""
    bits = width(a.dtype)
    if _within(number, bits):
        return a << count
    return select(_unsigned(count) < bits, a << (count & (bits - 1)), 0)


@numeric("shr")
@_shift
def shift_right(a: Value, count: Value, number: int | None) -> Value:
    """``a >> count``; 0, or the sign, for counts below 0 or from the width on."""
    bits = width(a.dtype)
    if _within(number, bits):
        return a >> count
    inside = _unsigned(count) < bits
    if a.dtype.startswith("u"):
        return select(inside, a >> (count & (bits - 1)), 0)
    return a >> select(inside, count, bits - 1)


@numeric("clz")
def clz(x: Value) -> Value:
    """Leading zero bits, as int32; the width for 0. The exponent of a float64 has the answer."""
    bits = width(x.dtype)
    if bits == 64:
        unsigned = _unsigned(x)
        high, low = (unsigned >> 32).to("uint32"), (unsigned & 0xFFFFFFFF).to("uint32")
        return select(high.eq(0), clz(low) + 32, clz(high))
    unsigned = _unsigned(x).to("uint32")
    exponent = (unsigned.to("float64").bits() >> 52).to("int32")
    return select(unsigned.eq(0), unsigned.const(bits, "int32"), (1023 + bits - 1) - exponent)


@numeric("popcount")
def popcount(x: Value) -> Value:
    """Number of set bits, in the dtype of ``x``."""
    bits = max(32, width(x.dtype))
    wide = f"uint{bits}"
    count = _unsigned(x).to(wide)

    def mask(byte: int) -> int:
        return int.from_bytes(bytes([byte]) * (bits // 8), "little")

    count = count - ((count >> 1) & mask(0x55))
    count = (count & mask(0x33)) + ((count >> 2) & mask(0x33))
    count = (count + (count >> 4)) & mask(0x0F)
    for shift in (8, 16, 32)[: 3 if bits == 64 else 2]:
        count = count + (count >> shift)
    return (count & 0x7F).to(x.dtype)


def _lowest_bit(x: Value) -> Value:
    return x & negate(x)


@numeric("ffs")
def find_first_set(x: Value) -> Value:
    """One plus the position of the lowest set bit, as int32; 0 for 0."""
    bits = width(x.dtype)
    return bits - clz(_lowest_bit(x))


@numeric("fns")
def find_nth_set(mask: Value, base: Value, offset: Value) -> Value:
    """Position of the ``offset``-th set bit of ``mask`` from ``base`` on, or -1.

    A negative ``offset`` counts downward; 0 asks whether bit ``base`` itself is set.
    """
    inside = (base >= 0) & (base < 32)
    start = base & 31
    rest = select(offset < 0, _reverse(mask), mask)
    first = select(offset < 0, 31 - start, start)
    rest = rest & (mask.const(0xFFFFFFFF) << first.to("uint32"))
    rest = select(inside, rest, 0)
    distance = select(offset < 0, negate(offset), offset)
    for found in range(1, 32):
        rest = select(distance > found, rest & (rest ^ _lowest_bit(rest)), rest)
    position = find_first_set(rest) - 1
    position = select((offset < 0) & (position >= 0), 31 - position, position)
    position = select((distance > 32) | (distance < 0), -1, position)
    own = select(inside & ((mask >> start.to("uint32")) & 1).ne(0), base, -1)
    return select(offset.eq(0), own, position)


def _reverse(x: Value) -> Value:
    """The bits of a uint32 in reverse order."""
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        x = ((x >> shift) & mask) | ((x & mask) << shift)
    return (x >> 16) | (x << 16)


@numeric("cast_int", typed=True)
def cast_int(dtype: str, x: Value) -> Value:
    """An integer modulo 2^width of another integer dtype."""
    return x.to(dtype)


def _rounded_shift(product: Value, count: Value) -> Value:
    """int64 ``product / 2 ** count``, halves upward."""
    half = product.const(1) << (count - 1)
    return (product + half) >> count


@numeric("q_multiply_shift")
def q_multiply_shift(x: Value, y: Value, q: Value, s: Value) -> Value:
    """Rounded ``x * y * 2 ** -s`` of numbers with ``q`` fractional bits."""
    left, right = select(s > 0, s, 0).to("int64"), select(s < 0, 0 - s, 0).to("int64")
    product = (x.to("int64") << left) * y.to("int64")
    return _rounded_shift(product, q.to("int64") + right).to("int32")


@numeric("q_multiply_shift_per_axis")
def q_multiply_shift_per_axis(
    x: Value, y: Value, left: Value, right: Value, q: Value, shifts_left: Value, shifts_right: Value
) -> Value:
    """:func:`q_multiply_shift` with separate shifts, each applied where its flag is set."""
    raised = x.to("int64") << select(shifts_left.ne(0), left, 0).to("int64")
    count = q.to("int64") + select(shifts_right.ne(0), right, 0).to("int64")
    return _rounded_shift(raised * y.to("int64"), count).to("int32")
