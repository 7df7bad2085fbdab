"""Powers, roots, the error function and other functions built on the exponential and logarithm."""

from __future__ import annotations

import math

from tilelang.cpu.intrinsics.math.compare import copysign
from tilelang.cpu.intrinsics.math.exponential import exp32_moderate, exp64
from tilelang.cpu.intrinsics.math.logarithm import log64
from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, horner, select

__all__: list[str] = []

# erf(x) / x - 1 in x^2 for |x| < 1, error of erf 2^-29.6
_ERF = (0.12837916612625122, -0.3761262595653534, 0.1128358542919159, -0.026853812858462334,
        0.005188327748328447, -0.0008010193123482168, 7.853860006434843e-05)  # fmt: skip
# -log(1 - erf(x)) / x for 1 <= x <= 4, error of erf 2^-31
_ERF_TAIL = (1.1286942958831787, 0.6349695324897766, 0.10653085261583328, -0.024010058492422104,
             0.0037574723828583956, -0.0003505909990053624, 1.3962348930363078e-05)  # fmt: skip


@numeric("sqrt")
def sqrt(x: Value) -> Value:
    """Square root, correctly rounded."""
    return x.intrinsic("sqrt")


@numeric("rsqrt")
def rsqrt(x: Value) -> Value:
    """Reciprocal of the square root."""
    return 1.0 / x.intrinsic("sqrt")


@numeric("rcp")
def reciprocal(x: Value) -> Value:
    """``1 / x``."""
    return 1.0 / x


@numeric("hypot")
def hypot(x: Value, y: Value) -> Value:
    """Length of the vector (x, y); infinite if either is, even beside NaN."""
    if x.dtype != "float32":
        return x.libm("hypot", y)
    a, b = x.to("float64"), y.to("float64")
    length = (a * a + b * b).intrinsic("sqrt").to("float32")
    infinite = x.magnitude().eq(math.inf) | y.magnitude().eq(math.inf)
    return select(infinite, math.inf, length)


@numeric("erf")
def erf(x: Value) -> Value:
    """Error function."""
    if x.dtype != "float32":
        return x.libm("erf")
    square = x * x
    near = horner(square, _ERF) * x + x
    size = x.magnitude()
    size = select(size > 4.0, 4.0, size)
    far = 1.0 - exp32_moderate(x.const(0.0) - horner(size, _ERF_TAIL) * size)
    return select(x.magnitude() < 1.0, near, copysign(far, x))


@numeric("pow")
def power(x: Value, y: Value) -> Value:
    """``x`` to the power ``y``, with the special cases of C."""
    if x.dtype != "float32":
        return x.libm("pow", y)
    base = x.magnitude()
    wide = select((base > 0.0) & (base < math.inf), base, 1.0).to("float64")
    logarithm = select(base.eq(0.0), -math.inf, select(base.eq(math.inf), math.inf, log64(wide)))
    scaled = logarithm * y.to("float64")
    # exp(200) is infinite in float32, exp(-200) is 0.
    scaled = select(scaled > 200.0, 200.0, select(scaled < -200.0, -200.0, scaled))
    result = select(base.eq(1.0), 1.0, exp64(scaled).to("float32"))  # 1 ** infinity too
    half = y * 0.5
    whole = y.intrinsic("trunc").eq(y)
    odd = whole & half.intrinsic("trunc").ne(half)
    flipped = (result.bits() ^ -0x80000000).reinterpret("float32")
    result = select(odd & (x.bits() < 0), flipped, result)
    undefined = (x < 0.0) & (base < math.inf) & ~whole
    result = select(undefined | x.ne(x) | y.ne(y), math.nan, result)
    return select(y.eq(0.0) | x.eq(1.0), 1.0, result)
