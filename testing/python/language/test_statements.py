"""Statements without a tile: output, checks, copies by hand, annotations, foreign code."""

from __future__ import annotations

import pytest
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.cuda import language as cuda
from tilelang.errors import SemanticError, TraceError, TraceTypeError, UnsupportedError
from tilelang.ir import builder
from tilelang.metal import language as metal
from tilelang.rocm import language as rocm

A = tir.decl_buffer((4, 8), "float32", "A", layout=None)
B = tir.decl_buffer((16,), "int8", "B", layout=None)
S = tir.decl_buffer((4, 8), "float16", "S", scope="shared.dyn", layout=None)
BAR = tir.decl_buffer((2,), "uint64", "bar", scope="shared.barrier", layout=None)
N = tir.Var("n", "int32")


def traced(function: object, *args: object, **options: object) -> list[tir.Stmt]:
    """The statements that a language function emits."""
    with builder.activate(builder.Builder("f")) as active:
        result = function(*args, **options)
        assert result is None or hasattr(result, "__exit__")
        active.emit(tir.Evaluate(0))  # what follows
    return active.finish()


def one(function: object, *args: object, **options: object) -> str:
    """The text of the one statement that a language function emits."""
    return repr(traced(function, *args, **options)[0]).splitlines()[-1]  # after declarations


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((S, "tile"), 'T.print("tile", S[0:4, 0:8], 0, 0)'),
        ((N + 1,), 'T.print("", n + 1, 0, 0)'),
        (("hello",), 'T.print("hello")'),
        ((None, "here"), 'T.print("here")'),
        ((A[0:2, 0:8], "part", 1, 2), 'T.print("part", A[0:2, 0:8], 1, 2)'),
        ((2.5,), 'T.print("", T.float32(2.5), 0, 0)'),
    ],
)
def test_print(arguments, text):
    assert one(T.print, *arguments) == text


def test_print_of_something_else():
    with pytest.raises(
        TraceTypeError, match="T.print: expected a scalar or expression, found dict"
    ):
        traced(T.print, {})
    with pytest.raises(TraceTypeError, match="msg must be a str"):
        traced(T.print, N, 3)


def test_device_assert_names_the_line():
    text = one(T.device_assert, N > 0, "n must be positive")
    assert text.startswith('T.device_assert(n > 0, "n must be positive at ') and __file__ in text
    assert (
        one(T.device_assert, N, no_stack_info=True)
        == 'T.device_assert(n != 0, "device assertion failed")'
    )
    assert one(T.device_assert, True) == "T.evaluate(0)", "a constant needs no code"


@pytest.mark.parametrize("check", [T.device_assert, T.assume])
def test_a_check_that_never_holds(check):
    with pytest.raises(SemanticError):
        traced(check, False)


def test_assume():
    assert one(T.assume, N % 8 == 0) == "T.assume(n % 8 == 0)"


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        (T.mbarrier_wait_parity, (BAR[0], N), "T.mbarrier_wait_parity(T.address_of(bar[0]), n)"),
        (T.barrier_wait, (BAR[1], 0), "T.mbarrier_wait_parity(T.address_of(bar[1]), 0)"),
        (T.mbarrier_arrive, (BAR[0], 1), "T.mbarrier_arrive(T.address_of(bar[0]), 1)"),
        (T.barrier_arrive, (BAR[0],), "T.mbarrier_arrive(T.address_of(bar[0]))"),
        (T.mbarrier_expect_tx, (BAR[0], 512), "T.mbarrier_expect_tx(T.address_of(bar[0]), 512)"),
        (T.ptx_wait_group, (0,), "T.ptx_wait_group(0)"),
        (
            T.ptx_cp_async,
            (S[0, 0], A[0, 0], 4),
            "T.ptx_cp_async(T.address_of(S[0, 0]), T.address_of(A[0, 0]), 4)",
        ),
        (cuda.tma_store_wait, (0, False), "T.tma_store_wait(0, T.bool(False))"),
        (cuda.set_max_nreg, (40, True), "T.set_max_nreg(40, T.bool(True))"),
        (cuda.dec_max_nreg, (24,), "T.set_max_nreg(24, T.bool(False))"),
        (cuda.rng_init, (7,), 'T.rng_init(7, "thread", 0, "curandStatePhilox4_32_10_t")'),
        (cuda.ptx_mma, ("float32", "m16n8k16", N), 'T.ptx_mma("float32", "m16n8k16", n)'),
        (cuda.cluster_sync, (), "T.cluster_sync()"),
        (
            cuda.warpgroup_fence_operand,
            (S,),
            'T.warpgroup_fence_operand(T.address_of(S[0, 0]), 0, 16, "float16")',
        ),
        (rocm.mfma, (N,), "T.tvm_mfma(n)"),
        (metal.simdgroup_load, (N,), "T.metal.simdgroup_load(n)"),
    ],
)
def test_asynchronous_names(function, arguments, text):
    assert one(function, *arguments) == text


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: cuda.ldg128(A[0, 0]), "uint32x4"),
        (lambda: cuda.ldg32(A, N > 0), "uint32"),
        (lambda: cuda.lds64(S[0, 4]), "uint32x2"),
        (lambda: getattr(cuda, "__ldg")(A, (0, 1)), "float32"),
        (lambda: cuda.rng_rand(), "uint32"),
        (lambda: cuda.rng_rand_float(64, "normal"), "float64"),
        (lambda: cuda.block_rank_in_cluster(), "int32"),
        (lambda: cuda.clc_is_canceled(S), "bool"),
        (lambda: rocm.ds_read_tr16_b64(S[0, 0]), "float16x4"),
    ],
)
def test_values_of_device_intrinsics(call, kind):
    assert call().ty == kind


def test_wide_stores_check_the_size():
    value = T.reinterpret(tir.Var("v", "float32x4"), "uint32x4")
    assert one(cuda.stg128, A[0, 0], value).startswith("T.stg128(T.address_of(A[0, 0])")
    with pytest.raises(
        TraceTypeError, match="T.stg64: the value must have 64 bits, found uint32x4"
    ):
        traced(cuda.stg64, A[0, 0], value)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (T.mbarrier_arrive, (3,), "requires a pointer, a buffer or an element, found int"),
        (T.mbarrier_wait_parity, (BAR[0], 0.5), "requires an integer, found float32"),
        (cuda.set_max_nreg, (250, True), "multiple of 8 from 24 to 240"),
        (cuda.rng_init, (1, 2, 3, "lcg"), "unknown generator 'lcg'"),
        (cuda.annotate_min_blocks_per_sm, (0,), "an int above 0"),
        (cuda.annotate_l2_hit_ratio, ({S: 0.5},), "expected a global buffer"),
        (cuda.annotate_l2_hit_ratio, ({A: 1.5},), "must lie in"),
        (cuda.alloc_tmem, ((64,), "float32"), "at least two extents"),
        (cuda.alloc_descriptor, ("mma",), "kind must be one of"),
        (cuda.alloc_cluster_barrier, (0,), "arrive counts must be >= 1"),
        (cuda.deallocate_tmem, (S,), "expects a buffer of T.alloc_tmem"),
        (T.ptx_wait_group, (), "missing 1 required positional argument"),
    ],
)
def test_wrong_arguments_of_device_functions(function, arguments, message):
    with pytest.raises((TraceError, TypeError), match=message):
        traced(function, *arguments)


# --- annotations ----------------------------------------------------------------------------------


def test_safe_values_wrap_what_follows():
    (attr,) = traced(T.annotate_safe_value, {A: 1})
    assert attr.attr_key == "tl.safe_value" and attr.node.same_as(A) and attr.value.value == 1.0
    assert repr(attr.body) == "T.evaluate(0)"


def test_function_facts_go_to_the_builder():
    with builder.activate(builder.Builder("f")) as active:
        T.annotate_compile_flags("-O3 -g")
        T.annotate_compile_flags(["--x"])
        T.annotate_pass_configs({"tl.disable_wgmma": True})
    assert active.annotations == {
        "compile_flags": ["-O3", "-g", "--x"],
        "pass_configs": {"tl.disable_wgmma": True},
    }


def test_import_source_wraps_what_follows():
    (attr,) = traced(T.import_source, "int f(int);")
    assert attr.attr_key == "pragma_import_c" and str(attr.value.value) == "int f(int);"


@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (T.annotate_safe_value, {3: 1}, "expected a buffer, found int"),
        (T.annotate_safe_value, [A], "expected a dict, found list"),
        (T.annotate_safe_value, {A: "x"}, "found str"),
        (T.annotate_restrict_buffers, N, "expected a buffer"),
        (T.annotate_layout, {A: 3}, "needs a Layout, Fragment or callable, found int"),
        (T.annotate_compile_flags, [3], "flags must be text"),
        (T.annotate_pass_configs, {3: 1}, "keys must be text"),
        (T.import_source, 3, "expected text"),
        (T.use_swizzle, 0, "panel_size must be an int >= 1"),
        (T.use_swizzle, 4, "only valid inside 'with T.Kernel"),
        (T.no_set_max_nreg, None, "takes 0 positional arguments"),
    ],
)
def test_wrong_annotations(function, argument, message):
    with pytest.raises((TraceError, TypeError), match=message):
        traced(function, argument)


def test_swizzle_is_a_fact_of_the_launch():
    @T.prim_func
    def kernel(x: T.int32):
        with T.Kernel(4, threads=32):
            T.use_swizzle(2, order="column")
            T.no_set_max_nreg()
            cuda.annotate_min_blocks_per_sm(2)

    launch = kernel.body.annotations
    assert dict(launch["tl.swizzle"]) == {"panel_size": 2, "order": "column"}
    assert launch["tl.keep_registers"] == 1 and launch["tl.min_blocks_per_sm"] == 2


# --- casts and vectors --------------------------------------------------------------------------


def test_casts():
    x = tir.Var("x", "float32")
    assert repr(T.cast(x, "float16")) == repr(T.Cast("float16", x)) == 'T.Cast("float16", x)'
    assert T.cast(x, T.bfloat16, round="rs", rbits=7).op.name == "tl.cast_stochastic"
    assert T.reinterpret(x, "int32").ty == T.reinterpret("int32", x).ty == "int32"
    assert T.reinterpret(x, T.tfloat32).same_as(x)


def test_vectors():
    v = tir.Var("v", "float16x4")
    assert repr(T.extract_lane(v, 3)) == "T.Shuffle([v], [3])"
    assert T.vectorlow(v).ty == T.vectorhigh("float16x2", v).ty == "float16x2"
    assert T.vectorcombine(v, v).ty == "float16x8"
    assert T.Shuffle([v, v], [0, 7]).ty == "float16x2"
    assert T.broadcast(1.5, 4).ty == "float32x4" and T.ramp(N, 1, 4).ty == "int32x4"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: T.cast(N, "float16", round="up"), TraceError, "unknown rounding mode 'up'"),
        (lambda: T.cast(N, "float16", sat=False), UnsupportedError, "only sat=True"),
        (lambda: T.cast(N, "float16", rbits=1), TraceError, "rbits is only used by round='rs'"),
        (lambda: T.cast(1.0, "float16", round="rs"), TraceError, "needs random bits"),
        (
            lambda: T.cast(N, "float16", round="rs", rbits=1),
            TraceTypeError,
            "found int32 to float16",
        ),
        (lambda: T.cast(tir.Var("v", "int32x2"), "int32"), TraceTypeError, "lanes differ"),
        (lambda: T.cast(T.address_of(A), "int64"), TraceTypeError, "cannot cast handle"),
        (lambda: T.reinterpret(N, "float16"), TraceTypeError, "int32 has 32 bits, float16 has 16"),
        (lambda: T.extract_lane(N, 0), TraceTypeError, "requires a vector, found int32"),
        (lambda: T.extract_lane(tir.Var("v", "int32x2"), 2), TraceError, "has no lane 2"),
        (lambda: T.extract_lane(tir.Var("v", "int32x2"), N), TraceTypeError, "must be a constant"),
        (lambda: T.Shuffle([N, N], [0, 2]), TraceError, "from 0 to 1"),
    ],
)
def test_wrong_casts_and_vectors(make, error, message):
    with pytest.raises(error, match=message):
        make()


# --- foreign code ---------------------------------------------------------------------------------


def test_extern_calls():
    call = T.call_extern("int32", "f", N, "text", S, A[0:2, 0:4])
    assert call.ty == "int32" and repr(call) == (
        'T.call_extern("int32", "f", n, "text", T.address_of(S[0, 0]), T.address_of(A[0, 0]))'
    )
    assert T.call_pure_extern("float16", "g").op.get_attr("TCallEffectKind") == 1
    assert isinstance(T.call_extern("handle", "h").ty, ir.PointerType)
    assert T.call_intrin("float32", "tirx.exp", tir.Var("x", "float32")).op.name == "tirx.exp"


def test_access_ptr():
    assert repr(T.access_ptr(A[1, 2], "rw")) == "T.access_ptr(A[1, 2], 0, 1, 3)"
    assert repr(T.access_ptr(A, "w")) == "T.access_ptr(A[0, 0], 0, 32, 2)"
    assert repr(T.access_ptr(B, "r", offset=N)) == "T.access_ptr(B[n], 0, 16, 1)"
    assert repr(T.access_ptr(A[0:2, 0:4], 1, 2, 3)) == "T.access_ptr(A[0, 0], 0, 6, 1)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.call_extern("f", N), "expected the name of a function"),
        (lambda: T.call_intrin("int32", "tirx.nothing"), "there is no op 'tirx.nothing'"),
        (lambda: T.call_extern("int33", "f"), "unknown dtype 'int33'"),
        (lambda: T.call_extern("int32", "f", {}), "found dict"),
        (lambda: T.access_ptr(A, "x"), "access_type must be r, w or rw"),
        (lambda: T.access_ptr(A, offset=3), "one-dimensional"),
        (lambda: T.access_ptr(A, "r", 3, extent=3), "either extents or extent"),
        (lambda: T.access_ptr(3), "requires a buffer, element or slice"),
        (lambda: T.address_of(3), "requires a pointer"),
        (lambda: T.isnullptr(N), "requires a pointer"),
    ],
)
def test_wrong_foreign_code(make, message):
    with pytest.raises((TraceError, TraceTypeError), match=message):
        make()


def test_plain_statements():
    assert one(T.evaluate, T.call_extern("int32", "f")) == 'T.call_extern("int32", "f")'
    assert one(T.buffer_store, A, 1, (0, N)) == "A[0, n] = T.float32(1.0)"
    (attr,) = traced(T.attr, A, "key", "value")
    assert attr.attr_key == "key"
    with pytest.raises(TraceTypeError, match="A has 2 dimensions, found 1 indices"):
        traced(T.buffer_store, A, 1, (0,))


def test_names_in_the_order_of_tvm():
    shuffled = T.tvm_warp_shuffle_up(0xFF, N, 1, 16, 32)
    assert repr(shuffled).splitlines()[-1] == "T.shfl_up(n, 1, 16, T.uint32(255))"
    assert T.tvm_warp_shuffle(1, N, 0, 32, 32).op.name == "tl.shfl_sync"
    assert T.tvm_warp_shuffle_down(1, N, 1, 32, 32).op.name == "tl.shfl_down"
    assert T.tvm_warp_activemask().ty == "uint64"
    assert one(T.tvm_storage_sync, "shared.dyn") == "T.sync_threads()"
    with pytest.raises(TraceError, match="no barrier for scope 'local'"):
        traced(T.tvm_storage_sync, "local")


def test_dp4a_accumulates_four_products():
    c = tir.decl_buffer((1,), "int32", "C", layout=None)
    (store, _) = traced(T.dp4a, B[4], B[8], c)
    assert store.buffer.same_as(c) and "B[7]" in repr(store) and "B[11]" in repr(store)
    with pytest.raises(TraceTypeError, match="A must be int8 or uint8, found float32"):
        traced(T.dp4a, A[0, 0], B[0], c)


def test_values_of_bindings():
    with builder.activate(builder.Builder("f")):
        y = T.bind(N + 1)
        assert T.has_let_value(y) and repr(T.get_let_value(y)) == "n + 1"
        assert not T.has_let_value(N)
        with pytest.raises(TraceError, match="no value is known"):
            T.get_let_value(N)
