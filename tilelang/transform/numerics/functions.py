"""Which operators of the language are elementwise functions, and the numeric operator for each."""

from __future__ import annotations

from typing import Any

from tvm import ir

__all__ = ["FLOAT_FUNCTIONS", "INT_FUNCTIONS", "KEPT_FUNCTIONS", "is_elementwise", "op_name"]

_SAME_NAME = (
    "exp exp2 exp10 log log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "rsqrt erf sigmoid nearbyint round isnan atan2 hypot copysign fmod pow nextafter ldexp"
)
_FAST = ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan")
#: Functions of floats: the IR op and the numeric operator that computes it.
FLOAT_FUNCTIONS: dict[str, str] = {
    **{f"tirx.{name}": name for name in _SAME_NAME.split()},
    "prim.log2": "log2",
    # The fast forms may be approximate; the precise formulas are fast enough here.
    **{f"tl.__{name}": name for name in _FAST},
    "tl.fast_rcp": "rcp",
    **{
        f"tl.ieee_{name}_rn": f"ieee_{name}"
        for name in ("add", "sub", "mul", "fdiv", "fmaf", "frcp", "fsqrt")
    },
    "tl.ieee_frsqrt": "ieee_frsqrt",
    "tl.round_tfloat32": "round_tfloat32",
}
#: Functions of integers.
INT_FUNCTIONS: dict[str, str] = {
    "tirx.popcount": "popcount",
    "prim.clz": "clz",
    "tl.__ffs": "ffs",
    "tl.__fns": "fns",
    "tirx.q_multiply_shift": "q_multiply_shift",
    "tirx.q_multiply_shift_per_axis": "q_multiply_shift_per_axis",
}
#: Functions of float32 and float64 that TVM lowers to one exact instruction by itself.
KEPT_FUNCTIONS = frozenset(
    {"tirx.fabs", "tirx.sqrt", "tirx.floor", "tirx.trunc", "prim.ceil", "tirx.ceil", "tirx.fma"}
)


def op_name(call: Any) -> str:
    """The name of the operator ``call`` calls, "" if it calls something else."""
    return str(call.op.name) if isinstance(call.op, ir.Op) else ""


def is_elementwise(call: ir.Call) -> bool:
    """Whether ``call`` is a function of floats that is computed lane by lane."""
    name = op_name(call)
    return name in FLOAT_FUNCTIONS or name in KEPT_FUNCTIONS
