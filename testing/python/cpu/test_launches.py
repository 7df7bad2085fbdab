"""Grids, several launches, workspaces and host code on the CPU."""

import pytest
import torch
from ways import TARGETS, check, execute

import tilelang
import tilelang.language as T
from tilelang.errors import ArgumentValueError, SemanticError


@pytest.mark.parametrize("grid", [(1,), (7,), (3, 5), (2, 3, 4), (1, 1, 9)])
def test_grids_of_one_to_three_dimensions(grid):
    shape = (*grid, *(1,) * (3 - len(grid)))

    @T.prim_func
    def program(B: T.Tensor(shape, "int32")):
        with T.Kernel(*grid) as blocks:
            x, y, z = (*(blocks if len(grid) > 1 else [blocks]), 0, 0)[:3]
            B[x, y, z] = x + 10 * y + 100 * z

    targets = TARGETS if len(grid) == 3 else ("llvm",)
    check(program, torch.zeros(shape, dtype=torch.int32), targets=targets)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows, cols", [(0, 3), (3, 0), (0, 0)])
def test_a_grid_with_a_zero_extent_launches_nothing(target, rows, cols):
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(m, n):
            T.fill(B, 1.0)

    assert execute(program, [torch.zeros(rows, cols), torch.zeros(4)], target)[1].sum() == 0


def test_a_constant_zero_grid_launches_nothing():
    @T.prim_func
    def program(B: T.Tensor((4,), "float32")):
        with T.Kernel(0):
            T.fill(B, 1.0)

    check(program, torch.zeros(4))


@pytest.mark.parametrize("target", TARGETS)
def test_a_negative_grid_is_refused(target):
    @T.prim_func
    def program(B: T.Tensor((4,), "float32"), n: T.int32):
        with T.Kernel(n - 3):
            T.fill(B, 1.0)

    with pytest.raises(ArgumentValueError, match="grid"):
        execute(program, [torch.zeros(4), 2], target)


def test_launches_run_in_order_and_pass_data_through_a_workspace():
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        twice = T.alloc_global((n,), "float32")
        small = T.alloc_global((2, 4), "int32")
        with T.Kernel(T.ceildiv(n, 16)) as bx:
            for i in T.Parallel(16):
                twice[bx * 16 + i] = A[bx * 16 + i] * 2
        with T.Kernel(2) as bx:
            for i in T.Parallel(4):
                small[bx, i] = bx * 4 + i
        with T.Kernel(n) as bx:
            B[bx] = twice[n - 1 - bx] + T.cast(small[1, bx % 4], "float32")

    check(program, torch.randn(37), torch.zeros(37))


def test_many_blocks_share_nothing():
    """Tiles of a block start undefined and belong to it, on whatever thread it runs."""

    @T.prim_func
    def program(A: T.Tensor((500, 8), "int32"), B: T.Tensor((500,), "int32")):
        with T.Kernel(500) as bx:
            tile = T.alloc_shared((8,), "int32")
            total = T.alloc_var("int32", init=0)
            T.copy(A[bx, 0:8], tile)
            for i in T.serial(8):
                total += tile[i]
            B[bx] = total

    a = torch.randint(-9, 9, (500, 8), dtype=torch.int32)
    assert torch.equal(check(program, a, out_idx=-1, targets=("llvm",))[-1], a.sum(1).int())


def test_host_conditions_choose_launches():
    @T.prim_func
    def program(B: T.Tensor((4,), "int32"), n: T.int32, flag: T.bool):
        if n > 3 and n % 2 == 0:
            with T.Kernel(1):
                T.fill(B, 1)
        elif flag:
            with T.Kernel(1):
                T.fill(B, 2)
        else:
            with T.Kernel(1):
                T.fill(B, 3)

    for n, flag, expected in [(4, False, 1), (3, True, 2), (6, True, 1), (5, False, 3)]:
        b = check(program, torch.zeros(4, dtype=torch.int32), n, flag)[0]
        assert b.tolist() == [expected] * 4


def test_host_loops_and_values():
    @T.prim_func
    def program(B: T.Tensor((6,), "int32"), n: T.int32):
        half = n // 2 + 1
        for step in T.serial(3):
            with T.Kernel(half) as bx:
                B[bx] += step + half

    check(program, torch.zeros(6, dtype=torch.int32), 7)


@pytest.mark.parametrize("target", TARGETS)
def test_host_assertions(target):
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n,), "float32")):
        assert n % 4 == 0, "n must be a multiple of four"
        with T.Kernel(1):
            T.fill(A[0:4], 1.0)

    execute(program, [torch.zeros(8)], target)
    a = torch.zeros(7)
    with pytest.raises(ArgumentValueError, match="n must be a multiple of four"):
        tilelang.compile(program, target=target)(a)
    assert a.sum() == 0


def test_a_function_without_a_launch_runs_as_one_block():
    @T.prim_func
    def program(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        for i in T.serial(16):
            B[i] = A[15 - i]

    check(program, torch.randn(16), torch.zeros(16))


def test_grid_and_shape_expressions():
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n * 3 + 1,), "int32"), B: T.Tensor((T.ceildiv(n, 2), 2), "int32")):
        with T.Kernel(T.min(T.ceildiv(n, 2), 5), T.max(n - n, 1)) as (bx, by):
            B[bx, 0] = A[bx * 3 + by]
            B[bx, 1] = A[n * 3]

    a = torch.arange(22, dtype=torch.int32)
    check(program, a, torch.zeros(4, 2, dtype=torch.int32))


@pytest.mark.parametrize("size", [64 * 1024, 300 * 1024, 1 << 20])
def test_tiles_beyond_the_stack_live_in_an_arena(size):
    count = size // 4

    @T.prim_func
    def program(A: T.Tensor((3, count), "float32"), B: T.Tensor((3, count), "float32")):
        with T.Kernel(3) as bx:
            first = T.alloc_shared((count,), "float32")
            second = T.alloc_shared((count,), "float32")
            small = T.alloc_shared((8,), "float32")
            T.fill(small, 0.5)
            T.copy(A[bx, 0:count], first)
            for i in T.Parallel(count):
                second[count - 1 - i] = first[i] + small[i % 8]
            T.copy(second, B[bx, 0:count])

    a = torch.randn(3, count)
    for target in TARGETS:
        b = tilelang.compile(program, target=target, out_idx=-1)(a)
        assert torch.equal(b, (a + 0.5).flip(1))


def test_host_code_that_only_a_kernel_can_run_is_refused():
    @T.prim_func
    def reads(A: T.Tensor((4,), "int32")):
        first = A[0]
        with T.Kernel(first):
            A[1] = 2

    with pytest.raises(SemanticError, match="host code cannot read the tensor A"):
        tilelang.compile(reads, target="llvm")

    @T.prim_func
    def writes(A: T.Tensor((4,), "int32")):
        A[0] = 1
        with T.Kernel(1):
            A[1] = 2

    with pytest.raises(SemanticError, match="BufferStore statement outside T.Kernel"):
        tilelang.compile(writes, target="llvm")

    @T.prim_func
    def loops(A: T.Tensor((4,), "int32"), n: T.int32):
        for _ in T.serial(n):
            with T.Kernel(1):
                A[0] += 1

    with pytest.raises(SemanticError, match="constant trip count"):
        tilelang.compile(loops, target="llvm")

    @T.prim_func
    def computes(A: T.Tensor((4,), "float32"), x: T.float32):
        with T.Kernel(T.cast(x, "int32")):
            A[0] = 1.0

    with pytest.raises(SemanticError, match="host code computes only with sizes and integer"):
        tilelang.compile(computes, target="llvm")
