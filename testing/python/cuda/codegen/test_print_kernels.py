"""The text of kernels: what a reader sees, and that it is CUDA for every architecture."""

from __future__ import annotations

import pytest
import tvm
from nvrtc_available import requires_nvrtc
from thread_programs import address, buffer, kernel, load, source, store
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm.target import Target

from tilelang.cuda.codegen import CudaPrinter, build_cuda
from tilelang.cuda.compile import compile_source
from tilelang.errors import CodegenError
from tilelang.ir.intrin import simt
from tilelang.ir.op.atomic import ELEMENT_ATOMIC, MEMORY_ORDERS, AtomicAttrs

ARCHS = ("sm_75", "sm_80", "sm_89", "sm_90a")
SHORT_FLOATS = (
    "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e4m3b11fnuz", "float8_e3m4", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
    "float4_e2m1fn",
)  # fmt: skip
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


def compiles(text, archs=ARCHS):
    for arch in archs:
        assert compile_source(text, arch).resources["kernel_0"].registers > 0


def arena(offset, dtype):
    pointer = ir.PointerType(ir.PrimType(dtype), "shared.dyn")
    return simt.expression("shared_arena", offset, result=pointer)


def tile_kernel():
    A, C = buffer("A", 4096, "float16"), buffer("C", 4096, "float32")
    rows = T.Var("rows", "int32")
    acc = buffer("acc", 8, "float32", "local", data_alignment=16)
    tile = buffer("A_tile", 1024, "float16", "shared.dyn")
    i = T.Var("i", "int32")

    def body(bx, tx):
        scaled = T.Cast("float32", load(tile, tx * 8 + i)) * T.FloatImm("float32", 0.1)
        return [
            T.AllocBuffer(acc),
            T.DeclBuffer(tile, data=arena(2048, "float16")),
            simt.call("vec_copy", address(tile, tx * 8), address(A, bx * 1024 + tx * 8), 16),
            T.Evaluate(ir.Call(ir.Op.get("tl.sync_threads"), [], ret_ty="void")),
            T.For(i, 0, 8, T.ForKind.UNROLLED, store(acc, i, load(acc, i) + scaled)),
            T.IfThenElse(bx * 32 + tx < rows, store(C, bx * 32 + tx, load(acc, 0)), None),
        ]

    return kernel([A, C, rows], body)


def test_a_kernel_reads_like_code():
    assert (
        source(tile_kernel())
        == """\
#include <tl/memory.h>
#include <tl/sync.h>
#include <tl/types.h>

extern "C" __global__ void __launch_bounds__(32)
kernel_0(const tl::half* __restrict__ A, float* __restrict__ C, const int rows) {
  extern __shared__ __align__(1024) unsigned char tl_smem[];
  const int bx = blockIdx.x;
  const int tx = threadIdx.x;

  alignas(16) float acc[8];
  tl::half* const A_tile = reinterpret_cast<tl::half*>(tl_smem + 2048);

  tl::vec_copy<16>(&A_tile[tx * 8], &A[bx * 1024 + tx * 8]);
  tl::sync_threads();

  #pragma unroll
  for (int i = 0; i < 8; ++i) {
    acc[i] += float(A_tile[tx * 8 + i]) * 0.1f;
  }

  if (bx * 32 + tx < rows) {
    C[bx * 32 + tx] = acc[0];
  }
}
"""
    )


@requires_nvrtc
def test_a_kernel_compiles_for_every_architecture():
    compiles(source(tile_kernel()))


@requires_nvrtc
def test_every_conversion_compiles():
    kinds = ("bool", "float32", "float64", *INTEGERS, *SHORT_FLOATS)
    arrays = {kind: buffer(f"{kind}_array", 64, kind) for kind in kinds}

    def body(bx, tx):
        return [
            store(arrays[b], tx, T.Cast(b, load(arrays[a], tx + 1)))
            for a in kinds
            for b in kinds
            if a != b
        ]

    compiles(source(kernel(list(arrays.values()), body)), ("sm_75", "sm_90a"))


@requires_nvrtc
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "int32",
                                   "uint8", "int64"])  # fmt: skip
def test_every_operator_compiles(dtype):
    A, B, C = (buffer(name, 64, dtype) for name in "ABC")
    flags = buffer("flags", 64, "bool")
    operators = [prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Max, prim.Min]
    if "int" in dtype:
        operators += [prim.FloorDiv, prim.FloorMod, prim.Mod, prim.LShift, prim.RShift,
                      prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor]  # fmt: skip
    compares = [prim.EQ, prim.NE, prim.LT, prim.LE, prim.GT, prim.GE]

    def body(bx, tx):
        a, b = load(A, tx), load(B, tx)
        return [
            *(store(C, tx, op(a, b)) for op in operators),
            *(store(flags, tx, op(a, b)) for op in compares),
            store(C, tx, prim.Select(prim.LT(a, b), a, b)),
        ]

    compiles(source(kernel([A, B, C, flags], body)), ("sm_75", "sm_80", "sm_90a"))


@requires_nvrtc
@pytest.mark.parametrize("kind", ["add", "min", "max", "or", "load", "store"])
def test_every_atomic_compiles(kind):
    dtypes = [*INTEGERS] if kind == "or" else ["float32", "float64", *INTEGERS, *SHORT_FLOATS[:4]]
    arrays = [buffer(f"{dtype}_array", 64, dtype) for dtype in dtypes]
    orders = [o for o in MEMORY_ORDERS
              if o not in {"load": ("release", "acq_rel"),
                           "store": ("acquire", "acq_rel", "consume")}.get(kind, ())]  # fmt: skip

    def body(bx, tx):
        statements = []
        for position, (array, dtype) in enumerate(zip(arrays, dtypes, strict=True)):
            attrs = AtomicAttrs(kind=kind, order=orders[position % len(orders)])
            args = [load(array, tx)] + ([load(array, tx + 1)] if kind != "load" else [])
            result = "void" if kind == "store" else ir.PrimType(dtype)
            call = ir.Call(ELEMENT_ATOMIC, args, attrs=attrs, ret_ty=result)
            statements.append(T.Evaluate(call) if kind == "store" else store(array, tx + 2, call))
        return statements

    compiles(source(kernel(arrays, body)), ("sm_75", "sm_80", "sm_90a"))


@requires_nvrtc
def test_vectors_compile():
    pairs = [
        buffer(f"{kind}_pairs", 64, f"{kind}x2") for kind in ("float16", "bfloat16", "float32")
    ]
    words = buffer("words", 64, "int8x4")
    total = buffer("total", 64, "int32")

    def body(bx, tx):
        lines = [store(p, tx, load(p, tx) * load(p, tx + 1) + load(p, tx + 2)) for p in pairs]
        lines.append(store(pairs[2], tx, T.Cast("float32x2", load(pairs[0], tx))))
        half = T.const(2.0, "float16")
        lines.append(store(pairs[0], tx, prim.Broadcast(half, 2) * load(pairs[0], tx)))
        operands = [load(words, tx), load(words, tx + 1), load(total, tx)]
        dot = ir.Call(ir.Op.get("tirx.dp4a"), operands, ret_ty=ir.PrimType("int32"))
        lines.append(store(total, tx, dot))
        lane = prim.Shuffle([load(pairs[2], tx)], [T.IntImm("int32", 1)])
        lines.append(store(total, tx, T.Cast("int32", lane)))
        return lines

    compiles(source(kernel([*pairs, words, total], body)))


def test_packed_elements_go_through_helpers():
    A, B = buffer("A", 64, "int4"), buffer("B", 64, "int4")
    own = buffer("own", 8, "int4", "local")

    def body(bx, tx):
        return [
            T.AllocBuffer(own),
            simt.call("vec_copy", address(own), address(A, tx * 8), 4),
            store(own, 1, load(own, 0)),
            store(B, tx, load(own, 1)),
        ]

    text = source(kernel([A, B], body))
    assert ("uint8_t own[4];" in text and "&A[tx * 8 / 2]" in text) or "&A[tx * 4]" in text
    assert "tl::store_sub(own, 1, tl::load_sub<tl::int4>(own, 0));" in text
    assert "tl::store_sub_shared(B, tx, tl::load_sub<tl::int4>(own, 1));" in text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda tx, n: prim.FloorDiv(tx, T.IntImm("int32", 4)), "tx / 4"),
        (lambda tx, n: prim.FloorMod(tx + 3, T.IntImm("int32", 4)), "(tx + 3) % 4"),
        (lambda tx, n: prim.FloorMod(tx - 3, T.IntImm("int32", 4)), "tl::floor_mod(tx - 3, 4)"),
        (lambda tx, n: prim.FloorDiv(n, T.IntImm("int32", 4)), "tl::floor_div(n, 4)"),
        (lambda tx, n: tx * 2 + 1, "tx * 2 + 1"),
        (lambda tx, n: (tx + n) * 2, "(tx + n) * 2"),
        (lambda tx, n: prim.Max(tx, n), "tl::max(tx, n)"),
        (lambda tx, n: T.bitwise_xor(tx, T.bitwise_and(n, 7)), "tx ^ (n & 7)"),
    ],
)
def test_index_arithmetic(make, text):
    out, n = buffer("out", 1024, "float32"), T.Var("n", "int32")
    func = kernel([out, n], lambda bx, tx: [store(out, make(tx, n), T.const(1.0, "float32"))],
                  legalize=False)  # fmt: skip
    assert f"out[{text}] = 1.0f;" in source(func)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, "float32", "0.1f"),
        (1.0, "float32", "1.0f"),
        (1e30, "float32", "1e+30f"),
        (0.1, "float64", "0.1"),
        (1.5, "float16", "tl::half(1.5f)"),
        (float("inf"), "float32", "tl::infinity"),
        (float("-inf"), "bfloat16", "tl::bfloat16(-tl::infinity)"),
        (-2, "int8", "int8_t(-2)"),
        (-(2**31), "int32", "(-2147483647 - 1)"),
        (2**40, "int64", "int64_t(1099511627776LL)"),
        (2**64 - 1, "uint64", "uint64_t(18446744073709551615ull)"),
    ],
)
def test_constants(value, dtype, text):
    out = buffer("out", 64, dtype)
    node = T.FloatImm(dtype, value) if isinstance(value, float) else T.const(value, dtype)
    assert f"out[tx] = {text};" in source(kernel([out], lambda bx, tx: [store(out, tx, node)]))


def test_what_is_only_read_is_constant():
    A, B = buffer("A", 64, "float32"), buffer("B", 64, "float32")
    text = source(kernel([A, B], lambda bx, tx: [store(B, tx, load(A, tx))]))
    assert "const float* __restrict__ A, float* __restrict__ B" in text


def test_buffers_that_may_overlap_lose_restrict():
    A, B = buffer("A", 64, "float32"), buffer("B", 64, "float32")
    func = kernel([A, B], lambda bx, tx: [store(B, tx, load(A, tx))])
    assert "const float* A, float* __restrict__ B" in source(func.with_attr("tl.may_alias", ["A"]))


def test_imported_source_stands_before_the_kernel():
    out = buffer("out", 64, "float32")
    foreign = "__device__ float twice(float x) { return 2 * x; }"
    call = ir.Call(ir.Op.get("tirx.call_extern"), [ir.StringImm("twice"), T.const(1.0, "float32")],
                   ret_ty=ir.PrimType("float32"))  # fmt: skip

    def body(bx, tx):
        inner = store(out, tx, call)
        return [T.AttrStmt(T.IntImm("int32", 0), "pragma_import_c", ir.StringImm(foreign), inner)]

    text = source(kernel([out], body))
    assert text.index(foreign) < text.index("__global__") and "out[tx] = twice(1.0f);" in text


def test_line_directives_lead_to_the_user():
    out = buffer("out", 64, "float32")
    span = ir.Span(ir.SourceName("user.py"), 12, 12, 0, 0)
    func = kernel([out], lambda bx, tx: [T.BufferStore(out, T.const(1.0, "float32"), [tx], span)])
    text = CudaPrinter(line_directives=True).module({"kernel_0": func})
    assert '#line 12 "user.py"\n' in text and "#line" not in source(func)


def test_names_of_the_language_are_not_hidden():
    out = buffer("threadIdx", 64, "float32")
    assert "threadIdx_1[tx] = 1.0f;" in source(
        kernel([out], lambda bx, tx: [store(out, tx, T.const(1.0, "float32"))])
    )


def test_a_register_array_has_a_constant_size():
    n = T.Var("n", "int32")
    array = T.decl_buffer((n,), "float32", "array", scope="local", layout=None)
    with pytest.raises(CodegenError, match="size of the register array array"):
        source(kernel([n], lambda bx, tx: [T.AllocBuffer(array), store(array, 0, load(array, 1))]))


def test_several_kernels_share_one_text():
    A = buffer("A", 64, "float32")
    first, second = (
        kernel([A], lambda bx, tx: [store(A, tx, T.const(1.0, "float32"))], name=name)
        for name in ("one", "two")
    )
    text = build_cuda(tvm.IRModule({"one": first, "two": second}), Target("cuda")).inspect_source()
    assert text.count("__global__") == 2 and "\none(" in text and "\ntwo(" in text


def test_blocks_next_to_each_other_use_the_same_names():
    A = buffer("A", 64, "float32")

    def loop(extent):
        i = T.Var("i", "int32")
        return T.For(i, 0, extent, T.ForKind.SERIAL, store(A, i, T.const(1.0, "float32")))

    inner = T.Var("i", "int32")
    body = T.For(inner, 0, 3, T.ForKind.SERIAL, T.SeqStmt([loop(4), store(A, inner, load(A, 0))]))
    text = source(kernel([A], lambda bx, tx: [loop(2), body]))
    assert text.count("int i = 0; i < ") == 2 and "int i_1 = 0; i_1 < 4" in text
    assert "A[i] = A[0];" in text


@pytest.mark.parametrize(
    ("mask", "width", "text"),
    [
        (2**32 - 1, 32, "tl::shfl_xor(A[tx], 1)"),
        (2**32 - 1, 16, "tl::shfl_xor(A[tx], 1, 16)"),
        (0xFFFF, 32, "tl::shfl_xor(A[tx], 1, 32, 0xffffu)"),
    ],
)
def test_masks_of_lanes_are_short(mask, width, text):
    A = buffer("A", 64, "float32")

    def body(bx, tx):
        args = [
            load(A, tx),
            T.IntImm("int32", 1),
            T.IntImm("int32", width),
            T.IntImm("uint32", mask),
        ]
        call = ir.Call(ir.Op.get("tl.shfl_xor"), args, ret_ty=ir.PrimType("float32"))
        return [store(A, tx, call)]

    assert text in source(kernel([A], body))


@requires_nvrtc
def test_explicit_accesses_and_copies_compile():
    A, B = buffer("A", 4096, "float32"), buffer("B", 4096, "float32")
    tile = buffer("tile", 1024, "float32", "shared.dyn")

    def op(name, *args, result="void"):
        return ir.Call(ir.Op.get(f"tl.{name}"), list(args), ret_ty=result)

    def body(bx, tx):
        word = ir.PrimType("uint32x4")
        four = op("ldg128", address(A, tx * 4), tx < 16, result=word)
        shared = op("lds128", address(tile, tx * 4), result=word)
        return [
            T.DeclBuffer(tile, data=arena(0, "float32")),
            T.Evaluate(op("ptx_cp_async", address(tile, tx * 4), address(A, tx * 4),
                          T.IntImm("int32", 4))),
            T.Evaluate(op("ptx_commit_group")),
            T.Evaluate(op("ptx_wait_group", T.IntImm("int32", 0))),
            T.Evaluate(op("stg128", address(B, tx * 4), four)),
            T.Evaluate(op("stg32", address(B, tx + 1024), load(A, tx), tx < 8)),
            T.Evaluate(op("sts128", address(tile, tx * 4), shared)),
        ]  # fmt: skip

    text = source(kernel([A, B], body))
    assert "tl::cp_async<16>(&tile[tx * 4], &A[tx * 4]);" in text
    assert "const float* __restrict__ A" in text
    compiles(text, ("sm_80", "sm_90a"))
