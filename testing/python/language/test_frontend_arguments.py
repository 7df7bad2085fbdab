"""Arguments of a kernel: tensors, pointers, scalars, sizes, outputs, and T.prim_func itself."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: F821, F841, F842, UP037

import pytest
import torch
from frontend_util import nodes, refused
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError
from tilelang.interpreter import interpret


def shapes(program):
    return [[str(e) for e in p.ty.shape] for p in program.params if tir.is_buffer_var(p)]


def test_spellings_of_a_tensor():
    dtype = "float16"

    @T.prim_func
    def f(
        A: T.Tensor((4, 8), dtype),
        B: T.Tensor[[4, 8], T.float16],
        C: T.Tensor[(4, 8), torch.float16],
        D: T.Tensor((4, 8)),
        E: T.Tensor(32, "half"),
        F: T.Tensor[32, T.int8],
        G: T.Tensor[[32, 4]],
        H: T.StridedTensor((4, 8), (16, 1), dtype),
    ):
        pass

    assert shapes(f) == [["4", "8"]] * 4 + [["32"], ["32"], ["32", "4"], ["4", "8"]]
    kinds = [str(p.ty.dtype) for p in f.params]
    assert kinds == ["float16"] * 3 + ["float32", "float16", "int8", "float32", "float16"]
    assert [p.name for p in f.params] == list("ABCDEFGH")
    assert [int(s) for s in f.params[7].ty.strides] == [16, 1] and not len(f.params[0].ty.strides)
    assert all(p.ty.layout is None for p in f.params)
    assert [p.ty.data_alignment for p in f.params] == [2, 2, 2, 4, 2, 1, 4, 2]
    assert f.attrs["global_symbol"] == "f"


def test_buffers_are_instances_of_tensor():
    seen = []

    @T.prim_func
    def f(A: T.Tensor((4,), "int32"), n: T.int32):
        seen.extend([isinstance(A, T.Tensor), isinstance(A, T.Buffer), isinstance(n, T.Tensor)])

    assert seen == [True, True, False]


def test_scalars_of_every_kind():
    size = T.dynamic("size")

    @T.prim_func
    def f(
        a: T.int8,
        b: T.uint64,
        c: T.float16,
        d: T.bool,
        e: "float32",
        g: torch.int64,
        h: size,
        p: T.ptr,
    ):
        pass

    assert [p.ty.dtype if isinstance(p.ty, ir.PrimType) else "ptr" for p in f.params] == [
        "int8",
        "uint64",
        "float16",
        "bool",
        "float32",
        "int64",
        "int32",
        "ptr",
    ]
    assert f.params[6].same_as(size)


def test_dynamic_sizes_are_shared():
    m, n = T.dynamic("m, n")
    wide = T.dynamic("wide", "int64")

    @T.prim_func
    def f(
        A: T.Tensor((m, n), "int32"),
        B: T.Tensor((n * 4, m + 1), "int32"),
        C: T.Tensor((wide,), "int32"),
    ):
        with T.Kernel(m):
            B[0, 0] = n + A.shape[1]

    a, b, c = f.params
    assert (
        a.ty.shape[1].same_as(n) and str(b.ty.shape[0]) == "n * 4" and c.ty.shape[0].ty == "int64"
    )
    out = torch.zeros((12, 3), dtype=torch.int32)
    interpret(f, torch.zeros((2, 3), dtype=torch.int32), out, torch.zeros(1, dtype=torch.int32))
    assert out[0, 0] == 6


def test_size_only_inside_an_expression():
    m = T.dynamic("m")

    @T.prim_func
    def f(A: T.Tensor((m * 4,), "int32"), B: T.Tensor((m * 3 + 1,), "int32")):
        with T.Kernel(1):
            for i in range(m * 4):
                A[i] = m

    a = torch.zeros(8, dtype=torch.int32)
    interpret(f, a, torch.zeros(7, dtype=torch.int32))
    assert a.tolist() == [2] * 8


def test_strides_may_be_dynamic():
    rows, stride = T.dynamic("rows stride")

    @T.prim_func
    def f(A: T.StridedTensor[[rows, 4], [stride, 1], "int32"], B: T.Tensor((rows,), "int32")):
        with T.Kernel(1):
            for i in range(rows):
                B[i] = A[i, 3]

    whole = torch.arange(24, dtype=torch.int32).reshape(3, 8)
    out = torch.zeros(3, dtype=torch.int32)
    interpret(f, whole[:, :4], out)
    assert out.tolist() == [3, 11, 19]


def test_bare_parameters_declared_in_the_body():
    @T.prim_func
    def f(A, B, n: T.int32, x):
        A: T.Tensor((n * 2,), "int32")
        B: T.Tensor[[A.shape[0]], "int32"]
        x: T.float32
        with T.Kernel(1):
            B[0] = A[1] + T.cast(x, "int32")

    assert [p.name for p in f.params] == ["A", "B", "n", "x"]
    assert shapes(f) == [["n * 2"], ["n * 2"]]
    b = torch.zeros(6, dtype=torch.int32)
    interpret(f, torch.arange(6, dtype=torch.int32), b, 3, 2.75)
    assert b[0] == 3


def test_outputs_become_trailing_parameters():
    m = T.dynamic("m")

    @T.prim_func
    def f(A, scale: T.int32):
        A: T.Tensor((m,), T.int32)
        C = T.empty((2 * m + 1,), T.int32)
        D = T.empty(m, dtype=T.int64)
        E = T.empty(m, 4)
        with T.Kernel(1):
            for i in range(m):
                C[i] = A[i] * scale
                D[i] = i
                E[i, 0] = 1.5
        return D, C, E

    assert [p.name for p in f.params] == ["A", "scale", "D", "C", "E"]
    assert list(f.attrs["tilelang_out_idx"]) == [-3, -2, -1]
    d, c, e = interpret(f, torch.arange(3, dtype=torch.int32), 5)
    assert d.tolist() == [0, 1, 2] and c.tolist()[:3] == [0, 5, 10] and c.shape == (7,)
    assert e.shape == (3, 4) and e.dtype == torch.float32


def test_annotations_of_the_whole_function():
    @T.prim_func
    def f(A):
        T.annotate_pass_configs({"tl.disable_tma_lower": True})
        A: T.Tensor((4,), T.int32)
        T.annotate_compile_flags(["-O3", "-g"])

    assert dict(f.attrs["tilelang_pass_configs"]) == {"tl.disable_tma_lower": True}
    assert list(f.attrs["tilelang_compile_flags"]) == ["-O3", "-g"]


def test_keyword_only_defaults_and_constants():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), *, width=3, label: 5, n: T.int32):
        with T.Kernel(1):
            A[0] = width * 10 + label
            A[1] = n

    assert [p.name for p in f.params] == ["A", "n"]
    a = torch.zeros(8, dtype=torch.int32)
    interpret(f, a, 9)
    assert a[:2].tolist() == [35, 9]


def test_callable_annotations_are_called():
    def matrix():
        return T.Tensor((2, 2), "int32")

    @T.prim_func
    def f(A: matrix):
        A[0, 0]

    assert shapes(f) == [["2", "2"]]


def test_orig_func_is_the_python_function():
    def plain(A: T.Tensor((4,), "int32")):
        pass

    assert T.prim_func(plain).orig_func is plain
    assert isinstance(T.prim_func()(plain), T.PrimFunc)
    assert isinstance(T.prim_func(plain, eager_jit=True), T.JITFunc)


def test_pointers_and_views():
    @T.prim_func
    def f(p: T.ptr(T.int32), A: T.Tensor((16,), T.int32), table: T.Tensor((2,), T.ptr)):
        P = T.make_tensor(p, (4, 4), T.int32)
        R = T.Tensor.from_ptr(p, (2, 4), T.int32, strides=(8, 1))
        B = T.Tensor((4, 4), T.int32, A.data)
        C = T.make_tensor(table[1], (3,), T.int32)
        with T.Kernel(1):
            P[1, 1] = B[2, 2]
            R[1, 0] = C[0]

    declared = nodes(f, tir.DeclBuffer)
    assert [d.buffer.name for d in declared] == ["P", "R", "B", "C"]
    assert [int(s) for s in declared[1].buffer.ty.strides] == [8, 1]
    assert str(f.params[2].ty.dtype) == "int64"


def test_handles_become_tensors():
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (16,), "int32")
        B = T.match_buffer(b, (16,), "int32")
        for i in T.thread_binding(16, "threadIdx.x"):
            B[i] = A[i] * 2

    assert shapes(f) == [["16"], ["16"]] and not nodes(f, tir.DeclBuffer)


def test_deprecated_spellings_warn():
    with pytest.warns(DeprecationWarning, match=r"T\.Tensor"):
        T.Buffer((4,), "int32")
    with pytest.warns(DeprecationWarning, match=r"T\.dynamic"):
        assert T.symbolic("n").name == "n"


def test_future_annotations_are_evaluated():
    size = 6
    source = "T.Tensor((size,), 'int32')"

    def f(A, B: T.int32):
        with T.Kernel(1):
            A[0] = size

    f.__annotations__["A"] = source
    assert shapes(T.prim_func(f)) == [["6"]]


def test_annotation_that_cannot_be_evaluated_refused():
    def f(A):
        pass

    f.__annotations__["A"] = "T.Tensor((hidden,), 'int32')"
    with pytest.raises(TraceError, match="'hidden'.*declare the argument in the body"):
        T.prim_func(f)


def test_positional_only_and_variadic_parameters_refused():
    with pytest.raises(TraceError, match="'A' of 'f' is positional-only"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32"), /):
            pass

    with pytest.raises(TraceError, match="'rest' of 'g' takes any number"):

        @T.prim_func
        def g(*rest):
            pass

    with pytest.raises(TraceError, match="'options' of 'h' takes any keyword"):

        @T.prim_func
        def h(**options):
            pass


def test_parameter_without_a_type_refused():
    with pytest.raises(TraceError, match="'A' of 'f' has no run-time type"):

        @T.prim_func
        def f(A):
            pass

    with pytest.raises(TraceError, match="'n' of 'g' has no run-time type.*T.int32"):

        @T.prim_func
        def g(n: int):
            pass


def test_use_before_the_declaration_refused():
    with refused(TraceError, "argument 'A'", "before it is declared"):

        @T.prim_func
        def f(A):
            n = A.shape[0]  # BAD
            A: T.Tensor((4,), "int32")


def test_second_declaration_refused():
    with refused(TraceError, "'A'", "twice"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32")):
            A: T.Tensor((8,), "int32")  # BAD


def test_declaration_of_no_parameter_refused():
    with refused(TraceError, "'B'", "no parameter of 'f'", "T.empty"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32")):
            B: T.Tensor((8,), "int32")  # BAD


def test_declaration_without_a_type_refused():
    with refused(TraceTypeError, "argument 'A'", "expected T.Tensor"):

        @T.prim_func
        def f(A):
            A: 5  # BAD


def test_returning_something_else_refused():
    with refused(TraceError, "returns 'A'", "T.empty"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32")):
            return A  # BAD

    with refused(TraceError, "returns a int"):

        @T.prim_func
        def g(A: T.Tensor((4,), "int32")):
            return 3  # BAD


def test_output_that_is_not_returned_refused():
    with refused(TraceError, "return each of its outputs once", "D"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32")):
            C = T.empty(4)
            D = T.empty(4)
            return C  # BAD

    with pytest.raises(TraceError, match="return each of its outputs once.*C"):

        @T.prim_func
        def g(A: T.Tensor((4,), "int32")):
            C = T.empty(4)


def test_output_inside_the_launch_refused():
    with refused(TraceError, "T.empty", "before"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                C = T.empty(4)  # BAD


def test_size_that_nothing_determines_refused():
    m = T.dynamic("m")
    with refused(TraceError, "size 'm'", "no argument determines it"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                A[0] = m  # BAD


def test_shapes_refused():
    with pytest.raises(TraceError, match="T.Tensor: an extent must be >= 0, found -1"):
        T.Tensor((4, -1), "int32")
    with pytest.raises(TraceTypeError, match="an extent must be an integer, found 'm'"):
        T.Tensor(("m",), "int32")
    with pytest.raises(TraceTypeError, match="unknown dtype 'float31'"):
        T.Tensor((4,), "float31")
    with pytest.raises(TraceError, match="shape has 2 dimensions and strides has 1"):
        T.StridedTensor((4, 4), (4,))
    with pytest.raises(TraceTypeError, match=r"takes \[shape, dtype\]"):
        T.Tensor["A", "int32", 4]
    with pytest.raises(TraceTypeError, match=r"takes \[shape, strides, dtype\]"):
        T.StridedTensor[4]


def test_names_of_sizes_refused():
    with pytest.raises(TraceTypeError, match="expected names such as 'm, n', found '2m'"):
        T.dynamic("2m")
    with pytest.raises(TraceTypeError, match="a size is an integer, found dtype float32"):
        T.dynamic("m", "float32")


def test_views_of_no_pointer_refused():
    with refused(TraceTypeError, "expected a pointer"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32")):
            B = T.Tensor((2, 2), "int32", A)  # BAD

    with refused(TraceTypeError, "64-bit integer"):

        @T.prim_func
        def g(n: T.int32):
            B = T.make_tensor(n, (2, 2))  # BAD

    with refused(TraceError, "T.match_buffer", "T.handle"):

        @T.prim_func
        def h(n: T.int32):
            B = T.match_buffer(n, (2, 2))  # BAD


def test_const_outside_a_jit_function_refused():
    with refused(TraceError, "T.const", "@tilelang.jit", "T.dynamic"):

        @T.prim_func
        def f(A):
            M = T.const("M")  # BAD
            A: T.Tensor((M,), "int32")
