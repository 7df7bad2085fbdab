"""Ways into the interpreter, printing and stopping."""

import inspect
import time

import numpy as np
import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import ArgumentTypeError, UnsupportedError
from tilelang.interpreter import InterpreterError, as_kernel_function, interpret


@T.prim_func
def double(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(2, threads=32) as bx:
        tile = T.alloc_shared((4,), "float32")
        for i in T.Parallel(4):
            tile[i] = A[bx * 4 + i] * 2
        T.copy(tile, B[bx * 4])


@tilelang.jit
def eager_scale(A, factor: T.float32, block: int = 4):
    N = T.const("N")
    A: T.Tensor((N,), T.float32)
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block)) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * factor
    return B


@tilelang.jit(out_idx=-1)
def lazy_double(n):
    @T.prim_func
    def program(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(n):
                B[i] = A[i] * 2

    return program


def test_interpret_is_a_top_level_name():
    assert tilelang.interpret is interpret


def test_eager_functions_are_traced_with_the_arguments():
    a = torch.randn(10)
    assert torch.equal(interpret(eager_scale, a, 3.0), a * 3)
    assert torch.equal(interpret(eager_scale, a, factor=2.0, block=8), a * 2)


def test_the_program_of_a_lazy_function():
    a = torch.randn(6)
    assert torch.equal(interpret(lazy_double.get_tir(6), a, out_idx=-1), a * 2)


def test_a_lazy_function_itself_makes_kernels():
    with pytest.raises(ArgumentTypeError, match=r"fn\.get_tir"):
        interpret(lazy_double, torch.randn(6))


@pytest.mark.parametrize("thing", [3, "kernel", None])
def test_other_things_cannot_be_interpreted(thing):
    with pytest.raises(ArgumentTypeError, match="cannot interpret"):
        interpret(thing)


def test_the_environment_variable_reroutes_kernels(monkeypatch):
    monkeypatch.setenv("TILELANG_INTERPRET", "1")
    a = torch.randn(7)
    kernel = lazy_double.with_options(verbose=False)(7)
    assert torch.equal(kernel(a), a * 2)
    assert torch.equal(interpret(kernel, a), a * 2)
    assert torch.equal(eager_scale.with_options(verbose=False)(a, 5.0), a * 5)


def test_a_kernel_function_can_be_called_again():
    run = as_kernel_function(double, -1)
    for _ in range(3):
        a = torch.randn(8)
        assert torch.equal(run(a), a * 2)


@pytest.mark.parametrize("option", [{"check_bounds": False}, {"stop_at": 3}])
def test_unknown_options_are_refused(option):
    with pytest.raises(
        ArgumentTypeError, match=f"unknown interpreter option '{next(iter(option))}'"
    ):
        interpret(double, torch.zeros(8), out_idx=-1, **option)


@pytest.mark.parametrize("stop", ["kernel.py", "kernel.py:x"])
def test_a_stop_names_a_line(stop):
    with pytest.raises(ArgumentTypeError, match="break_at"):
        interpret(double, torch.zeros(8), out_idx=-1, break_at=stop, on_break=print)


def test_a_stop_needs_a_function():
    with pytest.raises(ArgumentTypeError, match="needs on_break"):
        interpret(double, torch.zeros(8), out_idx=-1, break_at=12)


def line_of(text):
    lines, start = inspect.getsourcelines(double.orig_func)
    return start + next(i for i, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("with_file", [False, True])
def test_a_stop_shows_every_tile(with_file):
    line, seen = line_of("T.copy(tile"), []
    stop = f"test_api.py:{line}" if with_file else line
    a = torch.arange(8.0)
    interpret(
        double,
        a,
        out_idx=-1,
        break_at=stop,
        on_break=lambda s: seen.append((s.block, s.tiles["tile"], s.tiles["A"], s.variables["bx"])),
    )
    assert [block for block, *_ in seen] == [(0,), (1,)]
    assert seen[1][1].tolist() == [8, 10, 12, 14] and seen[1][2].tolist() == a.tolist()
    assert [bx for *_, bx in seen] == [0, 1]


def test_a_stop_inside_a_parallel_loop_shows_its_iterations():
    seen = []
    interpret(
        double, torch.arange(8.0), out_idx=-1, break_at=line_of("tile[i] ="), on_break=seen.append
    )
    assert len(seen) == 2 and seen[0].active.shape == (4,)
    assert seen[0].variables["i"].tolist() == [0, 1, 2, 3]
    assert "tile" in seen[0].tiles and len(seen[0].tiles) == 3
    assert (seen[0].file, seen[0].line) == (__file__, line_of("tile[i] ="))


def test_a_stop_elsewhere_does_nothing():
    interpret(double, torch.zeros(8), out_idx=-1, break_at="other.py:1", on_break=pytest.fail)


def test_print_shows_tiles_values_and_messages(capsys):
    @T.prim_func
    def program(A: T.Tensor((4,), "int32")):
        with T.Kernel(2) as bx:
            tile = T.alloc_shared((4,), "int32")
            T.fill(tile, 7)
            T.print(tile, msg="filled")
            T.print(bx * 10)
            T.print("hello")
            T.print(tile[1:3])

    interpret(program, torch.zeros(4, dtype=torch.int32))
    text = capsys.readouterr().out.splitlines()
    assert len(text) == 8
    assert text[0].startswith("[block (0,)]") and text[0].endswith("filled: tile = [7 7 7 7]")
    assert "test_api.py:" in text[0]
    assert (
        text[5].endswith(": 10") and text[6].endswith("hello") and text[7].endswith("tile = [7 7]")
    )


def test_print_shows_the_values_of_all_threads(capsys):
    @T.prim_func
    def program(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            T.print(T.get_thread_binding() * 2)

    interpret(program, torch.zeros(4, dtype=torch.int32))
    assert capsys.readouterr().out.strip().endswith("[0 2 4 6]")


def test_printing_does_not_need_written_memory(capsys):
    @T.prim_func
    def program(A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            tile = T.alloc_fragment((2,), "int32")
            T.print(tile)
            T.clear(tile)

    interpret(program, torch.zeros(4, dtype=torch.int32))
    assert "tile = " in capsys.readouterr().out


def test_device_assert_names_line_and_message():
    @T.prim_func
    def program(A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            T.device_assert(A[2] == 1, "third must be one")

    with pytest.raises(InterpreterError, match=r"(?s)third must be one.*T\.device_assert\(A\[2\]"):
        interpret(program, torch.zeros(4, dtype=torch.int32))


def test_extern_functions_may_be_given_a_meaning():
    @T.prim_func
    def program(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i] = T.call_extern("float32", "my_square", A[i])

    a = torch.arange(4.0)
    b = interpret(program, a, out_idx=-1, externs={"my_square": np.square})
    assert b.tolist() == [0, 1, 4, 9]
    with pytest.raises(UnsupportedError, match="extern function my_square is C code"):
        interpret(program, a, out_idx=-1)


def test_an_assumption_is_checked():
    @T.prim_func
    def program(n: T.int32, A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            T.assume(n > 0)
            A[0] = n

    a = torch.zeros(4, dtype=torch.int32)
    interpret(program, 1, a)
    with pytest.raises(InterpreterError, match="T.assume.* does not hold"):
        interpret(program, 0, a)


def test_the_quick_start_takes_well_under_a_second():
    @T.prim_func
    def program(
        A: T.Tensor((256, 256), "float16"),
        B: T.Tensor((256, 256), "float16"),
        C: T.Tensor((256, 256), "float32"),
    ):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            a, b = T.alloc_shared((128, 32), "float16"), T.alloc_shared((32, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(8, num_stages=3):
                T.copy(A[by * 128, k * 32], a)
                T.copy(B[k * 32, bx * 128], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(128, 128):
                c[i, j] = T.max(c[i, j], 0)
            T.copy(c, C[by * 128, bx * 128])

    a, b = torch.randn(256, 256).half(), torch.randn(256, 256).half()
    start = time.perf_counter()
    c = interpret(program, a, b, out_idx=-1)
    assert time.perf_counter() - start < 1.0
    torch.testing.assert_close(c, (a.float() @ b.float()).relu(), rtol=1e-5, atol=1e-4)
