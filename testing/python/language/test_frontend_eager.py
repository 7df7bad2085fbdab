"""Eager kernels for the JIT: which mode a function is in, and two-phase tracing."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: C416, F821, F841, UP037

import pytest
import torch
from frontend_util import nodes, refused
from tvm import ir
from tvm import tirx as tir
from tvm_ffi import structural_equal

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError
from tilelang.interpreter import interpret
from tilelang.language import Kernel, empty
from tilelang.language import Tensor as TensorAlias
from tilelang.language.eager import ConstSource, EagerFunction, detect_mode


def scale(A, B, factor: T.float32, block: int = 4, dtype=T.float32, **extra):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], dtype]
    B: T.StridedTensor((N, 3), (extra.get("pitch", 3), 1), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(M, block)) as bx:
        for i, j in T.Parallel(block, N):
            C[bx * block + i, j] = A[bx * block + i, j] * factor + B[j, 0]
    return C


def test_parameters_are_split():
    f = EagerFunction(scale)
    assert f.runtime_names == ("A", "B", "factor") and f.static_names == ("block", "dtype")
    assert f.__name__ == "scale" and "scale" in repr(f)


def test_signature_names_the_source_of_each_size():
    signature = EagerFunction(scale).signature({"dtype": "float16"})
    assert dict(signature.consts) == {
        "M": ConstSource("A", "shape", 0),
        "N": ConstSource("A", "shape", 1),
    }
    assert list(signature.arguments) == ["A", "B", "factor"]
    a, b, factor = signature.arguments.values()
    assert a.dtype == b.dtype == "float16" and factor.dtype == "float32"
    assert isinstance(a.shape[0], ir.Var) and b.shape[1] == 3 and b.strides == (3, 1)


def test_trace_uses_the_values_as_numbers():
    program = EagerFunction(scale).trace({"block": 2, "pitch": 5}, {"M": 6, "N": 8})
    assert [p.name for p in program.params] == ["A", "B", "factor", "C"]
    assert [int(e) for e in program.params[0].ty.shape] == [6, 8]
    assert int(program.params[1].ty.strides[0]) == 5
    assert list(program.attrs["tilelang_out_idx"]) == [-1]
    a, b = torch.randn(6, 8), torch.randn(8, 5)[:, :3]
    torch.testing.assert_close(interpret(program, a, b, 2.0), a * 2 + b[:, 0])


def test_declarations_in_the_signature_need_no_run():
    calls = []

    def f(A: T.Tensor((4,), "int32"), n: "int32" = 3, width=2):
        calls.append(1)
        with T.Kernel(1):
            A[0] = n

    signature = EagerFunction(f).signature()
    assert calls == [] and list(signature.arguments) == ["A", "n"] and not signature.consts
    EagerFunction(f).trace()
    assert calls == [1]


def test_phase_one_stops_at_the_last_declaration():
    reached = []

    def f(A, B):
        M = T.const("M")
        A: T.Tensor((M,), "int32")
        B: T.Tensor((M,), "int32")
        reached.append([k for k in range(M)])
        with T.Kernel(1):
            B[0] = A[0]

    assert set(EagerFunction(f).signature().consts) == {"M"} and reached == []
    EagerFunction(f).trace({}, {"M": 3})
    assert reached == [[0, 1, 2]]


def test_const_in_strides_and_dynamic_sizes():
    m = T.dynamic("m")

    def f(A):
        S = T.const("S", "int64")
        A: T.StridedTensor((m, 4), (S, 1), "int32")
        with T.Kernel(m):
            A[0, 0] = S

    signature = EagerFunction(f).signature()
    assert dict(signature.consts) == {"S": ConstSource("A", "strides", 0)}
    program = EagerFunction(f).trace({}, {"S": 9})
    assert program.params[0].ty.shape[0].same_as(m)


def test_const_given_by_keyword():
    def f(A):
        K = T.const("K")
        A: T.Tensor((4,), "int32")
        with T.Kernel(1):
            A[0] = K * 2

    assert not EagerFunction(f).signature().consts
    store = nodes(EagerFunction(f).trace({}, {"K": 7}), tir.BufferStore)[0]
    assert store.value == 14


def test_const_inside_an_expression_only_is_unknown():
    def f(A):
        K = T.const("K")  # BAD
        A: T.Tensor((K * 2,), "int32")
        with T.Kernel(1):
            A[0] = 1

    assert not EagerFunction(f).signature().consts
    with refused(TraceError, "T.const 'K'", "K=..."):
        EagerFunction(f).trace()


def test_conditional_declarations():
    def f(A, bias, with_bias: bool = True):
        A: T.Tensor((4,), "int32")
        if with_bias:
            bias: T.Tensor((4,), "int32")
        else:
            bias: T.int32
        with T.Kernel(1):
            A[0] = bias[1] if with_bias else bias

    with_tensor = EagerFunction(f).signature({"with_bias": True}).arguments["bias"]
    with_scalar = EagerFunction(f).signature({"with_bias": False}).arguments["bias"]
    assert hasattr(with_tensor, "shape") and not hasattr(with_scalar, "shape")


def test_each_trace_is_independent():
    f = EagerFunction(scale)
    first = f.trace({}, {"M": 4, "N": 4})
    again = f.trace({}, {"M": 4, "N": 4})
    assert not first.same_as(again) and structural_equal(first, again)


def test_missing_declaration_refused():
    def f(A, B):
        A: T.Tensor((4,), "int32")
        with T.Kernel(1):
            A[0] = 1
        B: T.Tensor((4,), "int32")

    with pytest.raises(TraceError, match="arguments B of 'f' are not declared before the kernel"):
        EagerFunction(f).signature()


def test_static_arguments_are_checked():
    def f(A: T.Tensor((4,), "int32"), width):
        A[0] = width

    with pytest.raises(TypeError, match="missing compile-time arguments: width"):
        EagerFunction(f).trace()
    with pytest.raises(TypeError, match="A are run-time arguments"):
        EagerFunction(f).trace({"A": 1, "width": 2})


def test_const_that_is_no_integer_refused():
    def f(A):
        K = T.const("K", "float32")  # BAD
        A: T.Tensor((K,), "int32")

    with refused(TraceTypeError, "a size is an integer"):
        EagerFunction(f).signature()


def test_variadic_eager_functions_refused():
    def f(*tensors):
        T.Kernel(1)

    with pytest.raises(TraceError, match="'tensors' of 'f' takes any number"):
        EagerFunction(f)


def factory(M, N, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype)):
        with T.Kernel(1):
            A[0, 0] = 1

    return main


def annotated(A: TensorAlias((4,), "int32")):
    raise AssertionError("never run")


def declared(A):
    A: T.Tensor[[4], "int32"]
    raise AssertionError("never run")


def launched(n=4):
    with Kernel(n):
        raise AssertionError("never run")


def with_output(n=4):
    C = empty(n)
    raise AssertionError("never run")


def local_import():
    import tilelang.language as tl
    from tilelang.language import const as symbol

    tl.alloc_var, symbol
    raise AssertionError("never run")


def scalar_only(n: T.int32, name: str = "T.Tensor"):
    """T.Kernel and T.const('M') in text do not count."""
    return factory(n, n)


def nested_use():
    def kernel():
        with T.Kernel(1):
            pass

    return kernel


def shadowed(T):
    with T.Kernel(1):
        pass


def test_mode_by_resolved_objects():
    eager = [annotated, declared, launched, with_output, local_import, scale]
    lazy = [factory, scalar_only, nested_use, shadowed]
    assert [detect_mode(f) for f in eager] == ["eager"] * len(eager)
    assert [detect_mode(f) for f in lazy] == ["lazy"] * len(lazy)


def test_mode_through_closures():
    def make(language):
        def f(n):
            with language.Kernel(n):
                pass

        return f

    class Other:
        Kernel = None

    assert detect_mode(make(T)) == "eager" and detect_mode(make(Other)) == "lazy"


def test_mode_of_a_callable_object_is_lazy():
    assert detect_mode(len) == "lazy"
