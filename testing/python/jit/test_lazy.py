"""Lazy mode: factories of kernels, and ready programs under the decorator."""

import pytest
import torch
import tvm

import tilelang
import tilelang.language as T
from tilelang.errors import TraceTypeError
from tilelang.jit import JITImpl, JITKernel


def make_scale(**options):
    calls = []

    @tilelang.jit(out_idx=-1, **options)
    def scale(n, factor=2.0, *, block=16, dtype="float32"):
        """Multiply."""
        calls.append((n, factor, block, dtype))

        @T.prim_func
        def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
            with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * factor

        return main

    return scale, calls


def test_a_call_returns_a_kernel():
    scale, _ = make_scale()
    a = torch.randn(64)
    kernel = scale(64)
    assert isinstance(scale, JITImpl) and isinstance(kernel, JITKernel)
    assert scale.is_lazy_mode() and scale.mode == "lazy"
    assert torch.equal(kernel(a), a * 2)


def test_equal_arguments_give_the_same_kernel_however_they_are_spelled():
    scale, calls = make_scale()
    kernel = scale(64)
    assert scale(64, 2.0) is kernel
    assert scale(n=64) is kernel
    assert scale(block=16, n=64, dtype="float32") is kernel
    assert scale.compile(64) is kernel
    assert len(calls) == 1


@pytest.mark.parametrize("change", [{"factor": 4.0}, {"block": 32}, {"factor": -2.0}])
def test_different_arguments_give_different_kernels(change):
    scale, _ = make_scale()
    assert scale(64, **change) is not scale(64)


def test_a_repeated_call_does_not_bind_its_arguments(monkeypatch):
    scale, _ = make_scale()
    kernel = scale(64, block=32)
    monkeypatch.setattr(scale._binder, "bind", None)
    assert scale(64, block=32) is kernel


def test_the_enclosing_target_counts():
    scale, calls = make_scale()
    outside = scale(64)
    with tvm.target.Target("c"):
        inside = scale(64)
    assert inside is not outside and inside.target.kind.name == "c"
    assert scale(64) is outside
    assert len(calls) == 2


def test_the_environment_names_the_default_target():
    scale, _ = make_scale()
    with tilelang.env.scope(TILELANG_DEFAULT_TARGET="c"):
        assert scale(64).target.kind.name == "c"
    assert scale(64).target.kind.name == "llvm"


def test_get_tir_traces_only():
    scale, calls = make_scale()
    program = scale.get_tir(64, factor=7.0)
    assert isinstance(program, tvm.tirx.PrimFunc) and "7" in program.script()
    assert len(calls) == 1


def test_the_decorated_function_stays_visible():
    scale, _ = make_scale(pass_configs={"tl.enable_fast_math": True}, verbose=False)
    assert scale.__name__ == "scale" and scale.__doc__ == "Multiply."
    assert list(scale.signature.parameters) == ["n", "factor", "block", "dtype"]
    assert scale.out_idx == -1 and scale.pass_configs == {"tl.enable_fast_math": True}
    assert "def scale(" in scale.func_source
    assert scale.get_kernel_source(64) == scale(64).get_kernel_source()


def test_with_options_leaves_the_original_alone():
    scale, _ = make_scale()
    other = scale.with_options(target="c")
    assert other(64).target.kind.name == "c" and scale.options.target is None
    with pytest.raises(TypeError, match="no option colour"):
        scale.with_options(colour="red")


def test_par_compile_takes_dicts_tuples_and_single_values():
    scale, _ = make_scale()
    configs = [{"n": 64, "factor": 3.0}, (64, 4.0), 64]
    kernels = scale.par_compile(configs, num_workers=2)
    a = torch.randn(64)
    for factor, kernel in zip((3.0, 4.0, 2.0), kernels, strict=True):
        assert torch.equal(kernel(a), a * factor)
    assert scale(64, 4.0) is kernels[1]


def test_par_compile_can_ignore_a_bad_configuration():
    scale, _ = make_scale()
    found = scale.par_compile([(64, 2.0), (64, 2.0, "too many")], ignore_error=True)
    assert isinstance(found[0], JITKernel) and found[1] is None
    with pytest.raises(TypeError, match="too many positional"):
        scale.par_compile([(64, 2.0, "too many")])


def test_debug_root_path_receives_program_and_code(tmp_path):
    scale, _ = make_scale(debug_root_path=tmp_path / "debug")
    scale(64)
    assert (
        "T.Tensor" in (tmp_path / "debug" / "main.py").read_text()
        or "main" in (tmp_path / "debug" / "main.py").read_text()
    )
    assert (tmp_path / "debug" / "main.source").stat().st_size > 0


def test_sizes_may_be_symbols():
    @tilelang.jit(out_idx=-1)
    def twice(n):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, 16), threads=32) as bx:
                for i in T.Parallel(16):
                    B[bx * 16 + i] = A[bx * 16 + i] * 2.0

        return main

    kernel = twice(T.dynamic("n"))
    for n in (1, 16, 45):
        a = torch.randn(n)
        assert torch.equal(kernel(a), a * 2)


def test_a_ready_program_is_accepted():
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def double(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[i] * 2.0

    a = torch.randn(32)
    kernel = double()
    assert isinstance(kernel, JITKernel) and double() is kernel and double.is_lazy_mode()
    assert torch.equal(kernel(a), a * 2)
    assert torch.equal(double(a), a * 2)
    assert double.with_options(target="c")().target.kind.name == "c"
    with pytest.raises(TypeError, match="no compile-time parameters"):
        double.compile(3)


def test_a_program_made_by_hand_is_accepted(add_factory):
    program = add_factory()
    bare = tvm.tirx.PrimFunc(program.params, program.body, attrs=program.attrs)
    a, b = torch.ones(64), torch.ones(64)
    assert torch.equal(tilelang.jit(bare, out_idx=-1)()(a, b), a + b)


def test_a_lazy_function_must_return_a_program():
    @tilelang.jit
    def nothing(n):
        return n

    with pytest.raises(TraceTypeError, match="returned int"):
        nothing(3)


@pytest.mark.parametrize("thing", [3, "text", int])
def test_only_functions_and_programs_are_decorated(thing):
    with pytest.raises(TraceTypeError, match="decorates a function or a PrimFunc"):
        tilelang.jit(thing)


def test_decorating_twice_is_refused():
    scale, _ = make_scale()
    with pytest.raises(TraceTypeError, match="twice"):
        tilelang.jit(scale)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        tilelang.jit(colour="red")


def test_wrong_calls_are_python_type_errors():
    scale, _ = make_scale()
    for call, message in (
        (lambda: scale(), "missing a required argument"),
        (lambda: scale(64, n=64), "multiple values"),
        (lambda: scale(64, colour="red"), "unexpected keyword"),
        (lambda: scale(64, colour={}), "unhashable|unexpected keyword"),
        (lambda: scale(bytearray(b"64")), "unhashable"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_a_wrong_call_compiles_nothing_and_leaves_the_function_usable():
    scale, calls = make_scale()
    with pytest.raises(TypeError):
        scale(64, colour="red")
    assert not calls and not scale._kernels
    assert isinstance(scale(64), JITKernel)
