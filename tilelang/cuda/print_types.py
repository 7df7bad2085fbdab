"""CUDA names of types and functions, and the device header each of them needs."""

from __future__ import annotations

from tilelang.codegen.c_family import Dialect

__all__ = [
    "BIT_TYPES",
    "CUDA_DIALECT",
    "HEADERS",
    "NUMERIC_FUNCTIONS",
    "NUMERIC_OPERATORS",
    "SUB_BYTE",
    "WARP_FUNCTIONS",
    "split_lanes",
]

_MINIFLOATS = (
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
    "float4_e2m1fn",
)  # fmt: skip
#: Types of which memory holds two a byte, the first one in the low bits.
SUB_BYTE = frozenset({"int4", "uint4", "float4_e2m1fn"})
_TYPES = {
    "bool": "bool",
    "handle": "void*",
    "void": "void",
    "": "void",  # what a bare handle points to
    "float16": "tl::half",
    "bfloat16": "tl::bfloat16",
    "float32": "float",
    "float64": "double",
    "int32": "int",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 64)},
    "uint32": "unsigned",
    "int4": "tl::int4",
    "uint4": "tl::uint4",
    **{name: f"tl::{name}" for name in _MINIFLOATS},
}
#: The unsigned type of the same size, by size in bytes.
BIT_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "unsigned", 8: "uint64_t"}

_MATH = (
    "exp", "exp2", "exp10", "log", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "erf", "sigmoid", "floor",
    "trunc", "round", "nearbyint", "atan2", "hypot", "copysign", "fmod", "pow", "nextafter",
    "ldexp", "isnan", "isinf", "isfinite", "fma",
)  # fmt: skip
_FAST = ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan")
_IEEE = (
    *(f"{name}_{mode}" for name in ("add", "sub", "mul", "fdiv", "fmaf", "frcp", "fsqrt")
      for mode in ("rn", "rz", "ru", "rd")),
    "frsqrt",
)  # fmt: skip
#: Functions of a warp; the last argument of most is the mask of lanes.
WARP_FUNCTIONS = (
    "shfl_sync", "shfl_xor", "shfl_up", "shfl_down", "any_sync", "all_sync", "ballot_sync",
    "activemask", "match_any_sync", "match_all_sync", "warp_reduce_sum", "warp_reduce_max",
    "warp_reduce_min", "warp_reduce_bitand", "warp_reduce_bitor", "get_lane_idx", "get_warp_idx",
    "get_warp_idx_sync", "get_warp_group_idx", "shuffle_elect",
)  # fmt: skip
_SYNC = (
    "sync_warp", "syncthreads_count", "syncthreads_and", "syncthreads_or", "sync_grid",
    "sync_global", "named_barrier_arrive",
)  # fmt: skip
_CLUSTER = (
    "cluster_arrive_relaxed", "cluster_arrive", "cluster_wait", "cluster_sync",
    "block_rank_in_cluster",
)  # fmt: skip
_DEPENDENT = ("pdl_trigger", "pdl_sync")

# function of namespace tl -> header; also what the functions of the table below need
_FUNCTION_HEADERS = {
    **dict.fromkeys(_MATH, "math"),
    **dict.fromkeys(("log2", "ceil", "abs", "round_tfloat32"), "math"),
    **dict.fromkeys((f"fast_{name}" for name in (*_FAST, "rcp")), "fast_math"),
    **dict.fromkeys((f"ieee_{name}" for name in _IEEE), "ieee"),
    **dict.fromkeys(("min", "max", "min_nan", "max_nan"), "minmax"),
    **dict.fromkeys(
        ("wrap_add", "wrap_sub", "wrap_mul", "trunc_div", "trunc_mod", "floor_div", "floor_mod",
         "shift_left", "shift_right", "popcount", "clz", "ffs", "find_nth_set", "q_multiply_shift",
         "q_multiply_shift_per_axis"),
        "integer",
    ),
    "cast": "convert",
    **dict.fromkeys(("bit_cast", "infinity", "nan"), "common"),
    **dict.fromkeys(
        ("vec_copy", "vec_zero", "load_sub", "store_sub", "store_sub_shared", "ldg"), "memory"
    ),
    **dict.fromkeys(
        ("vec", "make_vec", "broadcast", "ramp", "map", "select", "concat", "lanes_from"), "vec"
    ),
    **dict.fromkeys(WARP_FUNCTIONS, "warp"),
    **dict.fromkeys(("sync_threads", "named_barrier_sync", *_SYNC), "sync"),
    **dict.fromkeys(_CLUSTER, "cluster"),
    **dict.fromkeys(_DEPENDENT, "dependent_launch"),
    **dict.fromkeys(("inc_max_nreg", "dec_max_nreg"), "register_budget"),
    **dict.fromkeys(("print", "print_element", "device_assert"), "print"),
    **dict.fromkeys(("cp_async", "cp_async_commit", "cp_async_wait"), "cp_async"),
    **dict.fromkeys(("ldmatrix_x1", "ldmatrix_x2", "ldmatrix_x4"), "ldmatrix"),
    **dict.fromkeys(("half", "bfloat16"), "types"),
    **dict.fromkeys(("int4", "uint4", *_MINIFLOATS), "minifloat"),
    "cast_stochastic": "stochastic",
    "rng_state": "rng",
    **dict.fromkeys(("load_words", "store_words"), "words"),
    "dp4a": "dot",
    "fma_odd": "ieee",
}  # fmt: skip


class _Headers(dict[str, str]):
    """Families of functions whose members are not listed: matrix instructions and atomics."""

    def __missing__(self, name: str) -> str:
        if name.startswith("mma_sp_"):
            return "mma_sparse"
        return "mma" if name.startswith("mma_") else "atomic"


#: The header of a function or type of namespace ``tl``.
HEADERS: dict[str, str] = _Headers(_FUNCTION_HEADERS)

_FUNCTIONS = {
    **{(f"tirx.{name}", ""): f"tl::{name}" for name in _MATH},
    ("prim.log2", ""): "tl::log2",
    ("prim.ceil", ""): "tl::ceil",
    ("tirx.ceil", ""): "tl::ceil",
    ("tirx.fabs", ""): "tl::abs",
    ("prim.clz", ""): "tl::clz",
    ("tirx.popcount", ""): "tl::popcount",
    ("tl.__ffs", ""): "tl::ffs",
    ("tl.__fns", ""): "tl::find_nth_set",
    ("tirx.q_multiply_shift", ""): "tl::q_multiply_shift",
    ("tirx.q_multiply_shift_per_axis", ""): "tl::q_multiply_shift_per_axis",
    **{(f"tl.__{name}", ""): f"tl::fast_{name}" for name in _FAST},
    ("tl.fast_rcp", ""): "tl::fast_rcp",
    ("tl.round_tfloat32", ""): "tl::round_tfloat32",
    **{(f"tl.ieee_{name}", ""): f"tl::ieee_{name}" for name in _IEEE},
    **{
        (f"tl.{name}", ""): f"tl::{name}"
        for name in (*WARP_FUNCTIONS, *_SYNC, *_CLUSTER, *_DEPENDENT)
    },
    ("tl.min_nan", ""): "tl::min_nan",
    ("tl.max_nan", ""): "tl::max_nan",
    ("tl.cp_async_commit", ""): "tl::cp_async_commit",
    ("tl.ptx_commit_group", ""): "tl::cp_async_commit",
}

#: Numeric operators (``tl.num.<name>``) that C++ writes with a symbol.
NUMERIC_OPERATORS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
#: Numeric operators that are functions of another name.
NUMERIC_FUNCTIONS = {
    "add": "wrap_add",
    "sub": "wrap_sub",
    "mul": "wrap_mul",
    "truncdiv": "trunc_div",
    "truncmod": "trunc_mod",
    "floordiv": "floor_div",
    "floormod": "floor_mod",
    "ieee_fmaf.odd": "fma_odd",
    "shl": "shift_left",
    "shr": "shift_right",
}

CUDA_DIALECT = Dialect(
    "CUDA",
    _TYPES,
    _FUNCTIONS,
    function_prefix='extern "C" __global__ ',
    restrict="__restrict__",
    # Names of the toolkit, of the C library and ours that a buffer must not hide.
    reserved=(
        "tl", "tl_smem", "tl_rng", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize",
        "printf", "asm", "char", "operator", "typename", "constexpr", "static_cast", "signed",
        "reinterpret_cast", "alignas", "half", "abs", "min", "max", "exp", "log", "sin", "cos",
        "y0", "y1", "yn", "j0", "j1", "jn", "gamma", "index", "signbit", "isnan", "isinf",
        "nullptr", "decltype", "export", "friend", "mutable", "namespace", "noexcept", "not",
        "and", "or", "xor", "bool", "try", "catch", "throw", "using", "virtual", "delete",
        "static_assert", "thread_local", "wchar_t", "explicit", "protected", "compl", "bitand",
        "bitor", "typeid", "dynamic_cast", "const_cast", "int8_t", "uint8_t", "int16_t",
        "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "uintptr_t", "main",
    ),
)  # fmt: skip


def split_lanes(name: str) -> tuple[str, int]:
    """``("float16", 4)`` of ``float16x4``; one lane without a number."""
    head, separator, lanes = name.rpartition("x")
    return (head, int(lanes)) if separator and lanes.isdigit() else (name, 1)
