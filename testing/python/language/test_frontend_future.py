"""Kernels in a module with ``from __future__ import annotations``."""

from __future__ import annotations

import pytest
from frontend_util import nodes
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError
from tilelang.language.eager import EagerFunction, detect_mode

WIDTH = 3


def make_eager(rows, kind):
    def f(A, n: T.int32, B: T.Tensor((rows, WIDTH), kind)):
        M = T.const("M")
        A: T.Tensor[[M, rows], kind]
        with T.Kernel(1):
            A[0, 0] = n

    return f, EagerFunction(f)


def test_names_of_the_enclosing_function_are_found():
    plain, eager = make_eager(5, "int8")
    assert detect_mode(plain) == "eager" and eager.runtime_names == ("A", "n", "B")
    arguments = eager.signature().arguments
    assert arguments["A"].shape[1] == 5 and arguments["B"].shape == (5, 3)
    program = eager.trace({}, {"M": 2})
    assert [str(p.ty.dtype) for p in program.params] == ["int8", "int32", "int8"]


def test_two_kernels_of_one_definition():
    shapes = [make_eager(rows, "int8")[1].signature().arguments["A"].shape[1] for rows in (2, 9)]
    assert shapes == [2, 9]


def test_prim_func():
    def make(rows):
        @T.prim_func
        def f(A: T.Tensor((rows, 2), "int32"), B, n: T.int32):
            B: T.Tensor((rows,), "int32")
            with T.Kernel(1):
                B[0] = A[0, 0] + n

        return f

    assert [int(e) for e in make(6).params[1].ty.shape] == [6]


def test_builtin_classes_are_compile_time_annotations():
    def f(A: T.Tensor((4,), "int8"), width: int = 2, scale: float = 1.0, flag: bool = True):
        with T.Kernel(1):
            A[0] = width

    assert EagerFunction(f).runtime_names == ("A",)


def test_text_that_names_nothing_is_a_dtype():
    def f(A: "T.Tensor((4,), 'int8')", n: "int32", m: "half"):  # noqa: F821, UP037
        with T.Kernel(1):
            A[0] = n

    assert EagerFunction(f).runtime_names == ("A", "n", "m")


def test_references_of_macros():
    @T.macro
    def bump(x: T.Ref, by: T.int32):
        x += by

    @T.prim_func
    def f(A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            bump(A[1], 2)

    (store,) = nodes(f, tir.BufferStore)
    assert store.indices[0] == 1


def test_unknown_name_refused():
    with pytest.raises(TraceError, match="annotation of parameter 'A' of 'f': name 'nowhere'"):

        @T.prim_func
        def f(A: T.Tensor((nowhere,), "int32")):  # noqa: F821
            pass
