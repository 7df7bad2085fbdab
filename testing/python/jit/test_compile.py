"""``compile`` and ``par_compile``: outputs, configurations, flags, where kernels come from."""

import gc

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import PassConfigError


def inputs(n=64):
    """Whole numbers: their products and sums are exact, fused or not."""
    return torch.randint(-99, 99, (n,)).float(), torch.randint(-99, 99, (n,)).float()


@pytest.mark.parametrize("out_idx", [2, -1, [2], [-1]])
def test_one_output_is_returned_as_a_tensor(add_factory, out_idx):
    a, b = inputs()
    assert torch.equal(tilelang.compile(add_factory(), out_idx=out_idx)(a, b), a + b)


def test_without_outputs_every_tensor_is_passed(add_factory):
    a, b = inputs()
    c = torch.empty(64)
    assert tilelang.compile(add_factory())(a, b, c) is None
    assert torch.equal(c, a + b)


def split_program():
    @T.prim_func
    def split(
        A: T.Tensor((8,), "float32"),
        Low: T.Tensor((4,), "float32"),
        High: T.Tensor((4,), "float32"),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                Low[i] = A[i]
                High[i] = A[i + 4]

    return split


@pytest.mark.parametrize(("out_idx", "order"), [([1, 2], (0, 1)), ([-1, -2], (1, 0))])
def test_several_outputs_are_a_list_in_the_order_asked_for(out_idx, order):
    a = torch.arange(8.0)
    found = tilelang.compile(split_program(), out_idx=out_idx)(a)
    assert isinstance(found, list)
    for tensor, half in zip(found, order, strict=True):
        assert torch.equal(tensor, a[4 * half : 4 * half + 4])


def test_the_program_is_unchanged_and_the_compiled_one_names_its_outputs(add_factory):
    program = add_factory()
    kernel = tilelang.compile(program, out_idx=-1)
    assert "tilelang_out_idx" not in program.attrs
    assert list(kernel.prim_func.attrs["tilelang_out_idx"]) == [-1]
    assert kernel.out_idx == [2]


@pytest.mark.parametrize(
    ("out_idx", "message"),
    [
        (3, "out of range"),
        (-4, "out of range"),
        ([2, -1], "twice"),
        ("2", "integers"),
        ([True], "integers"),
    ],
)
def test_wrong_output_indices_are_refused(add_factory, out_idx, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tilelang.compile(add_factory(), out_idx=out_idx)


def test_a_scalar_cannot_be_an_output():
    @T.prim_func
    def fill(A: T.Tensor((8,), "float32"), value: T.float32):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                A[i] = value

    with pytest.raises(ValueError, match="'value', which is no tensor"):
        tilelang.compile(fill, out_idx=1)


def doubling_program():
    @T.prim_func
    def double(A: T.Tensor((8,), "float32")):
        B = T.empty((8,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[i] * 2.0
        return B

    return double


def test_a_program_that_returns_its_outputs_needs_no_indices():
    a = torch.randn(8)
    assert torch.equal(tilelang.compile(doubling_program())(a), a * 2)


def test_outputs_cannot_be_named_twice():
    with pytest.raises(ValueError, match="Out index conflict"):
        tilelang.compile(doubling_program(), out_idx=-1)


def test_pass_configs_of_the_caller_win_and_flags_are_appended():
    @T.prim_func
    def annotated(A: T.Tensor((8,), "float32")):
        T.annotate_pass_configs(
            {"tl.enable_fast_math": True, "tl.disable_safe_memory_legalize": True}
        )
        T.annotate_compile_flags(["-own"])
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                A[i] = 1.0

    kernel = tilelang.compile(
        annotated, pass_configs={"tl.enable_fast_math": False}, compile_flags="-given -more"
    )
    assert kernel.pass_configs["tl.enable_fast_math"] is False
    assert kernel.pass_configs["tl.disable_safe_memory_legalize"] is True
    assert kernel.compile_flags == ("-own", "-given", "-more")


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"tl.fast_math": True}, "unknown pass config"),
        ({"tl.enable_fast_math": 3}, "must be bool"),
        (3, "mapping"),
    ],
)
def test_wrong_pass_configs_are_refused(add_factory, configs, message):
    with pytest.raises(PassConfigError, match=message):
        tilelang.compile(add_factory(), pass_configs=configs)


def test_wrong_flags_are_refused(add_factory):
    with pytest.raises(TypeError, match="compile_flags"):
        tilelang.compile(add_factory(), compile_flags=["-O2", 3])


@pytest.mark.parametrize("thing", [lambda: None, "text", None])
def test_only_programs_are_compiled(thing):
    with pytest.raises(TypeError, match="takes a PrimFunc"):
        tilelang.compile(thing)


def test_an_unknown_execution_backend_is_refused(add_factory):
    with pytest.raises(ValueError, match="nope"):
        tilelang.compile(add_factory(), execution_backend="nope")


def test_a_living_kernel_is_not_built_twice(add_factory):
    kernel = tilelang.compile(add_factory(scale=3.5))
    assert tilelang.compile(add_factory(scale=3.5)) is kernel
    assert tilelang.compile(add_factory(scale=4.5)) is not kernel


def test_a_kernel_that_died_comes_from_the_disk(add_factory):
    kernel = tilelang.compile(add_factory(scale=5.5), out_idx=-1)
    del kernel
    gc.collect()
    again = tilelang.compile(add_factory(scale=5.5), out_idx=-1)
    a, b = inputs()
    assert again.from_cache and torch.equal(again(a, b), a * 5.5 + b)


def test_a_disabled_cache_compiles_anew(add_factory):
    with tilelang.env.scope(TILELANG_DISABLE_CACHE="1"):
        first, second = (tilelang.compile(add_factory(scale=6.5)) for _ in range(2))
    assert first is not second and not second.from_cache


def test_whoever_watches_the_passes_gets_no_cached_kernel(add_factory, tmp_path):
    configs = {"tl.enable_dump_ir": True, "tl.dump_ir_path": str(tmp_path)}
    first, second = (tilelang.compile(add_factory(), pass_configs=configs) for _ in range(2))
    assert not first.from_cache and not second.from_cache


def test_a_program_without_a_key_is_compiled_all_the_same(add_factory):
    program = add_factory().with_attr("note", object())
    kernel = tilelang.compile(program, out_idx=-1)
    a, b = inputs()
    assert torch.equal(kernel(a, b), a + b) and not kernel.from_cache


def test_par_compile_keeps_the_order(add_factory):
    programs = [add_factory(scale=float(s)) for s in (11, 12, 13)]
    kernels = tilelang.par_compile(programs, out_idx=-1, num_workers=2)
    a, b = inputs()
    for scale, kernel in zip((11, 12, 13), kernels, strict=True):
        assert torch.equal(kernel(a, b), a * scale + b)


def test_par_compile_raises_or_leaves_a_gap(add_factory):
    programs = [add_factory(scale=21.0), doubling_program()]
    bad = {"execution_backend": "cython", "target": "c", "compile_flags": ["-no-such-flag"]}
    with pytest.raises(tilelang.errors.DeviceCompileError, match="no-such-flag"):
        tilelang.par_compile(programs, **bad)
    assert tilelang.par_compile(programs, ignore_error=True, **bad) == [None, None]


def test_par_compile_of_nothing_is_nothing():
    assert tilelang.par_compile([]) == []


def test_par_compile_needs_a_worker(add_factory):
    with pytest.raises(ValueError, match="num_workers"):
        tilelang.par_compile([add_factory()], num_workers=0)


def test_the_interpreter_can_run_any_kernel(add_factory):
    a, b = inputs()
    with tilelang.env.scope(TILELANG_INTERPRET="1"):
        kernel = tilelang.compile(add_factory(), out_idx=-1)
    assert kernel.adapter.name == "interpreter"
    assert torch.equal(kernel(a, b), a + b)
