"""Every node points to the user's line; errors show it; the builder's own rules."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: B007, F841

import sys
import time
import traceback

import pytest
from frontend_util import line_of, nodes, refused
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.builder import Builder, activate, seq

Ints = T.Tensor((16,), T.int32)


@T.prim_func
def program(A: Ints, B: Ints, n: T.int32):
    assert n > 0, "positive"
    with T.Kernel(1) as bx:
        tile = T.alloc_shared((16,), T.int32)
        T.copy(A, tile)
        for i in T.Parallel(16):
            v = A[i] * 2
            if v > n:
                B[i] = v + tile[i]
        x = T.alloc_var(T.int32, 0)
        while x < n:
            x += 1


def test_statements_point_to_their_lines():
    expected = {
        tir.AssertStmt: ['assert n > 0, "positive"'],
        tir.AllocBuffer: ["tile = T.alloc_shared((16,), T.int32)", "x = T.alloc_var(T.int32, 0)"],
        tir.Evaluate: ["T.copy(A, tile)"],
        tir.Bind: ["v = A[i] * 2"],
        tir.IfThenElse: ["if v > n:"],
        tir.While: ["while x < n:"],
        tir.BufferStore: ["B[i] = v + tile[i]", "x = T.alloc_var(T.int32, 0)", "x += 1"],
    }
    for kind, lines in expected.items():
        assert [line_of(node) for node in nodes(program, kind)] == lines
    assert line_of(nodes(program, tir.For)[0]) == "with T.Kernel(1) as bx:"
    assert line_of(nodes(program, tir.For)[-1]) == "for i in T.Parallel(16):"


def test_every_statement_and_load_has_a_span():
    for node in [*nodes(program, tir.Stmt), *nodes(program, ir.TensorLoad)]:
        assert node.span is not None and node.span.source_name.name == __file__, node
    assert all(param.span is not None for param in program.params)
    assert program.span.line == program.orig_func.__code__.co_firstlineno


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns are known from Python 3.11 on")
def test_columns_count_from_one():
    (bind,) = nodes(program, tir.Bind)
    assert (bind.span.column, bind.value.a.span.column) == (13, 17)


def test_arithmetic_has_spans():
    (bind,) = nodes(program, tir.Bind)
    (branch,) = nodes(program, tir.IfThenElse)
    assert line_of(bind.value) == "v = A[i] * 2" and line_of(branch.condition) == "if v > n:"


def test_error_text_shows_the_line():
    with pytest.raises(TraceError) as caught:

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                A[0, 1] = 5

    text = str(caught.value)
    assert f"--> {__file__}:" in text and "A[0, 1] = 5" in text


def test_traceback_has_no_frames_of_the_compiler_below_the_user():
    with pytest.raises(TraceError) as caught:

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                A[0, 1] = 5

    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].line == "A[0, 1] = 5" and len(frames) <= 4


def test_error_of_tvm_is_translated():
    def multiply(a):
        return a.astype("no such type")  # BAD

    with refused(TraceError, "cannot be traced"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                A[0] = multiply(A[1])


def test_tracing_again_is_fast():
    def make():
        @T.prim_func
        def gemm(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16")):
            with T.Kernel(2, 2, threads=128) as (bx, by):
                A_shared = T.alloc_shared((128, 32), "float16")
                C_local = T.alloc_fragment((128, 32), "float32")
                for k in T.Pipelined(8, num_stages=2):
                    T.copy(A[by * 128, k * 32], A_shared)
                    T.copy(A_shared, C_local)
                for i, j in T.Parallel(128, 32):
                    C_local[i, j] = T.max(C_local[i, j], 0)
                T.copy(C_local, B[by * 128, bx * 32])

        return gemm

    make()
    times = []
    for _ in range(20):
        start = time.perf_counter()
        make()
        times.append(time.perf_counter() - start)
    assert min(times) < 0.010


def test_blocks_and_sequences():
    trace = Builder("f")
    with activate(trace):
        assert builder.current() is trace
        builder.emit(tir.Evaluate(1))
        with trace.block() as inner:
            builder.emit(tir.Evaluate(2))
        builder.emit(tir.Evaluate(3))
    assert builder.current_or_none() is None
    assert [s.value.value for s in inner] == [2]
    assert [s.value.value for s in trace.finish()] == [1, 3]
    assert seq([]).value == 0 and isinstance(seq(inner + inner), tir.SeqStmt)


def test_wrappers_take_what_follows():
    trace = Builder("f")
    node = tir.IntImm("int32", 0)
    with activate(trace):
        builder.emit(tir.Evaluate(1))
        trace.wrap_rest(lambda body: tir.AttrStmt(node, "outer", 1, body))
        trace.wrap_rest(lambda body: tir.AttrStmt(node, "inner", 1, body))
        builder.emit(tir.Evaluate(2))
    first, outer = trace.finish()
    assert first.value == 1 and (outer.attr_key, outer.body.attr_key) == ("outer", "inner")
    assert outer.body.body.value == 2


def test_bind_names_its_variable():
    trace = Builder("f")
    n = T.dynamic("n")
    with activate(trace):
        var = trace.bind("twice", n * 2)
    (bind,) = trace.finish()
    assert bind.var.same_as(var) and var.name == "twice"


def test_builders_nest():
    outer_seen = []

    @T.prim_func
    def outer(A: Ints):
        @T.prim_func
        def inner(B: Ints):
            with T.Kernel(1):
                B[0] = 1

        outer_seen.append(inner)
        with T.Kernel(1):
            A[0] = 2

    assert [len(nodes(p, tir.BufferStore)) for p in (outer, outer_seen[0])] == [1, 1]


def test_an_open_block_is_noticed():
    @T.macro
    def leaves_a_loop(A):
        for i in range(4):  # BAD
            A[7, 7] = 1

    with refused(TraceError, "left by an exception"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                for k in range(2):
                    try:
                        leaves_a_loop(A)
                    except TraceError:
                        A[0] = 1
                A[1] = 1
