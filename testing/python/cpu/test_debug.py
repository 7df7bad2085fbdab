"""``T.print``, ``T.device_assert``, ``assert`` and ``T.assume`` in compiled kernels."""

import pathlib
import subprocess
import sys

import pytest
import torch
from ways import TARGETS, execute

import tilelang
import tilelang.language as T
from tilelang.errors import ArgumentValueError, KernelAssertionError

pytestmark = pytest.mark.parametrize("target", TARGETS)


def printed(capfd, program, *args, target):
    """What a run prints: standard output of the process, without the file name."""
    execute(program, args, target)
    folder = str(pathlib.Path(__file__))
    return capfd.readouterr().out.replace(folder, "FILE")


def test_print_shows_messages_values_and_tiles_with_place_and_block(capfd, target):
    @T.prim_func
    def program(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((2, 3), "float16")
            T.fill(tile, 1.5)
            T.print("a message")
            T.print(A[1] + 0.5)
            T.print(A, msg="input")
            T.print(tile)
            T.print(tile[0:1, 1:3], msg="part")

    line = execute_line(program)
    lines = printed(capfd, program, torch.arange(4.0), target=target).splitlines()
    assert lines == [
        f"[block (0,)] FILE:{line}: a message",
        f"[block (0,)] FILE:{line + 1}: 1.5",
        f"[block (0,)] FILE:{line + 2}: input: A = [0. 1. 2. 3.]",
        f"[block (0,)] FILE:{line + 3}: tile = [[1.5 1.5 1.5]",
        " [1.5 1.5 1.5]]",
        f"[block (0,)] FILE:{line + 4}: part: tile = [[1.5 1.5]]",
    ]


def execute_line(program):
    """The line of the first ``T.print`` of a program."""
    lines = pathlib.Path(__file__).read_text().splitlines()
    first = program.span.line - 1
    return next(n + 1 for n in range(first, len(lines)) if "T.print(" in lines[n])


def test_print_agrees_with_the_interpreter(capfd, target):
    @T.prim_func
    def program(A: T.Tensor((6, 4), "int32"), n: T.int32):
        with T.Kernel(1, 1):
            T.print(n, msg="n")
            T.print(A[1:5:1, 2], msg="column")
            T.print(n > 2)

    a = torch.arange(24, dtype=torch.int32).reshape(6, 4)
    got = printed(capfd, program, a, 7, target=target)
    assert got == printed(capfd, program, a, 7, target="interpreter")


@pytest.mark.parametrize(
    "dtype, bytes_, shown",
    [
        ("bfloat16", [0xC0, 0x3F, 0, 0], "[1.5 0]"),
        ("float8_e4m3fn", [0x38, 0xB8], "[1 -1]"),
        ("float8_e5m2", [0x3C, 0xC0], "[1 -2]"),
        ("uint8", [250, 3], "[250   3]"),
        ("int4", [0xF1], "[ 1 -1]"),
        ("uint4", [0xF1], "[ 1 15]"),
        ("float4_e2m1fn", [0xF1], "[0.5 -6]"),
        ("bool", [1, 0], "[ True False]"),
    ],
)
def test_print_of_every_kind_of_element(capfd, target, dtype, bytes_, shown):
    @T.prim_func
    def program(A: T.Tensor((2,), dtype)):
        with T.Kernel(1):
            T.print(A)

    a = torch.tensor(bytes_, dtype=torch.uint8).view(T.dtype(dtype).as_torch())
    assert printed(capfd, program, a, target=target).endswith(f"A = {shown}\n")


def test_print_in_loops_and_branches_and_of_strided_and_symbolic_tensors(capfd, target):
    n, s = T.dynamic("n"), T.dynamic("s")

    @T.prim_func
    def program(A: T.StridedTensor((n, 2), (s, 1), "int32")):
        with T.Kernel(1):
            for i in T.serial(3):
                if i % 2 == 0:
                    T.print(i)
            T.print(A)
            T.print(A[n - 1 : n + 3, 0:2], msg="last")

    a = torch.arange(12, dtype=torch.int32).reshape(3, 4)[:, :2]
    text = printed(capfd, program, a, target=target)
    values = [line.split(": ", 1)[1] if ": " in line else line for line in text.splitlines()]
    assert values == ["0", "2", "A = [[0 1]", " [4 5]", " [8 9]]", "last: A = [[8 9]]"]


def test_a_tile_is_printed_once_and_a_value_by_every_thread(capfd, target):
    @T.prim_func
    def program():
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((4,), "int32")
            mine = T.alloc_local((1,), "int32")
            tile[tx] = tx
            mine[0] = 10 + tx
            T.sync_threads()
            T.print(tile, msg="tile")
            T.print(tx, msg="thread")
            T.print(mine, msg="mine")

    lines = [line.split(": ", 1)[1] for line in printed(capfd, program, target=target).splitlines()]
    assert lines[0] == "tile: tile = [0 1 2 3]"
    assert sorted(lines[1:]) == sorted(
        [f"thread: {t}" for t in range(4)] + [f"mine: mine = [{10 + t}]" for t in range(4)]
    )


def test_a_closed_standard_output_does_not_stop_the_kernel(target, monkeypatch, capsys):
    @T.prim_func
    def program(B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            T.print("lost")
            B[0] = 7

    class Closed:
        def write(self, text):
            raise ValueError("I/O operation on closed file")

    kernel = tilelang.compile(program, target=target, out_idx=-1)
    monkeypatch.setattr(sys, "stdout", Closed())
    assert kernel().tolist() == [7]
    assert "closed file" in capsys.readouterr().err


def asserting(kind):
    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(4) as bx:
            for i in T.Parallel(16):
                if kind == "assert":
                    assert A[bx * 16 + i] < 50, "A is too big"
                else:
                    T.device_assert(A[bx * 16 + i] < 50, "A is too big")
                B[bx * 16 + i] = A[bx * 16 + i]

    return program


@pytest.mark.parametrize("kind", ["assert", "device_assert"])
def test_a_failed_assertion_raises_and_leaves_the_process_healthy(target, kind):
    kernel = tilelang.compile(asserting(kind), target=target)
    a, b = torch.arange(64.0), torch.zeros(64)
    with pytest.raises(KernelAssertionError, match="A is too big") as caught:
        kernel(a, b)
    assert isinstance(caught.value, AssertionError)
    assert f"{__file__}:" in str(caught.value)
    kernel(a.clamp(max=49), b)
    assert torch.equal(b, a.clamp(max=49))


def test_a_failed_assertion_names_its_line(target):
    @T.prim_func
    def program(A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            assert A[0] == 1
            assert A[1] == 1, f"element {1} must be one"

    with pytest.raises(KernelAssertionError) as caught:
        execute(program, [torch.tensor([1, 0, 0, 0], dtype=torch.int32)], target)
    text = str(caught.value)
    assert text.splitlines()[0] == "element 1 must be one"
    assert text.splitlines()[-1].strip().startswith("| " + " " * 12 + "assert A[1] == 1")


def test_an_assertion_without_a_place(target):
    @T.prim_func
    def program(n: T.int32):
        with T.Kernel(1):
            T.device_assert(n != 0, "n is zero", no_stack_info=True)

    with pytest.raises(KernelAssertionError, match="^n is zero$"):
        execute(program, [0], target)


def test_an_integer_condition_holds_unless_it_is_zero(target):
    @T.prim_func
    def program(n: T.int32):
        with T.Kernel(1):
            T.device_assert(n & 6)

    execute(program, [2], target)
    with pytest.raises(KernelAssertionError, match="device assertion failed"):
        execute(program, [9], target)


def test_an_assertion_in_a_thread_program(target):
    @T.prim_func
    def program(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "int32")
            tile[tx] = A[tx]
            T.sync_threads()
            T.device_assert(tile[63 - tx] >= 0, "negative")

    execute(program, [torch.arange(64, dtype=torch.int32)], target)
    with pytest.raises(KernelAssertionError, match="negative"):
        execute(program, [torch.arange(64, dtype=torch.int32) - 1], target)


def test_assertions_guard_what_follows(target):
    """What a passed assertion implies needs no bounds check."""
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n,), "float32"), i: T.int32, B: T.Tensor((1,), "float32")):
        with T.Kernel(1):
            assert i >= 0 and i < n, "out of range"
            B[0] = A[i]

    a, b = torch.arange(5.0), torch.zeros(1)
    assert execute(program, [a, 3, b], target)[1].item() == 3
    with pytest.raises(KernelAssertionError, match="out of range"):
        execute(program, [a, 5, b], target)


def test_an_assumption_on_arguments_is_checked_at_the_call(target):
    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1):
            T.assume(n % 8 == 0)
            for i in T.serial(n):
                A[i] = 1.0

    a = torch.zeros(64)
    assert execute(program, [a, 16], target)[0].sum() == 16
    with pytest.raises(ArgumentValueError, match="T.assume.* does not hold"):
        execute(program, [a, 17], target)


def test_an_assumption_on_data_is_not_checked(target):
    @T.prim_func
    def program(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            T.assume(A[0] >= 0)
            T.copy(A, B)

    a = torch.tensor([1, 2, 3, 4], dtype=torch.int32)
    assert torch.equal(execute(program, [a], target, out_idx=-1)[1], a)


LOAD = """
import pathlib, sys
from tilelang.jit.adapter import KernelBundle, find_adapter
folder = pathlib.Path(sys.argv[1])
files = {path.name: path.read_bytes() for path in folder.iterdir()}
find_adapter(sys.argv[2])(KernelBundle.from_files(files, folder)).func(41)
"""


def test_a_kernel_that_is_only_loaded_prints(target, tmp_path):
    """In a process that never lowers anything, as from the cache."""

    @T.prim_func
    def program(n: T.int32):
        with T.Kernel(1):
            T.print(n, msg="value")

    kernel = tilelang.compile(program, target=target)
    for name, data in kernel.adapter.bundle.to_files().items():
        (tmp_path / name).write_bytes(data)
    command = [sys.executable, "-c", LOAD, str(tmp_path), kernel.execution_backend]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(": value: 41\n")
