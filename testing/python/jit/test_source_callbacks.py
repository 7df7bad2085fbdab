"""Callbacks over generated source: they act, and no cache mixes edited and unedited kernels."""

import re

import pytest
import torch
import tvm_ffi

import tilelang
import tilelang.language as T
from tilelang.backend.source_callback import remove_source_callback
from tilelang.engine import callback
from tilelang.errors import BackendError, CodegenError

ONES = torch.ones(16)


@pytest.fixture(autouse=True)
def no_callback_stays():
    yield
    for kind in ("c", "cuda", "hip", "metal"):
        remove_source_callback(kind)


@T.prim_func
def triple(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(16):
            B[i] = A[i] * 3.0


@tilelang.jit(target="c")
def eager_triple(A):
    A: T.Tensor((16,), "float32")
    B = T.empty((16,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(16):
            B[i] = A[i] * 3.0
    return B


def compiled():
    return tilelang.compile(triple, out_idx=1, target="c")


def five_for_three(source, target):
    assert target.kind.name == "c"
    return source.replace("3.0", "5.0")


def test_the_edited_source_is_what_runs_and_what_is_shown():
    tilelang.register_c_postproc(five_for_three)
    kernel = compiled()
    assert torch.equal(kernel(ONES), 5 * ONES)
    assert "5.0" in kernel.get_kernel_source()


def test_edited_cuda_source_is_what_runs():
    @callback.register_cuda_postproc_callback
    def five_times(source, target):
        assert str(target.kind.name) == "cuda"
        return re.sub(r"\b3\.0+f?", "5.0f", source)

    kernel = tilelang.compile(triple, out_idx=-1, execution_backend="emulator")
    assert "5.0f" in kernel.get_kernel_source()
    assert torch.equal(kernel(ONES), ONES * 5)


def test_no_cache_serves_the_one_for_the_other():
    before = compiled()
    tilelang.register_c_postproc(five_for_three)
    edited = compiled()
    assert torch.equal(edited(ONES), 5 * ONES) and not edited.from_cache
    remove_source_callback("c")
    after = compiled()
    assert torch.equal(after(ONES), 3 * ONES) and torch.equal(before(ONES), 3 * ONES)
    assert after is not edited


def test_a_second_callback_replaces_the_first():
    tilelang.register_c_postproc(five_for_three)
    compiled()
    tilelang.register_c_postproc(lambda source, target: source)
    assert torch.equal(compiled()(ONES), 3 * ONES)


def test_an_eager_function_that_ran_before_obeys():
    for _ in range(3):  # the repeated call takes the fast way
        assert torch.equal(eager_triple(ONES), 3 * ONES)
    tilelang.register_c_postproc(five_for_three)
    assert torch.equal(eager_triple(ONES), 5 * ONES)
    assert torch.equal(eager_triple(ONES), 5 * ONES)
    remove_source_callback("c")
    assert torch.equal(eager_triple(ONES), 3 * ONES)


def test_another_target_is_not_touched():
    tilelang.register_c_postproc(lambda source, target: "no code at all")
    kernel = tilelang.compile(triple, out_idx=1, target="llvm")
    assert torch.equal(kernel(ONES), 3 * ONES)


@pytest.mark.parametrize("parentheses", [False, True])
def test_decorators_return_the_function(parentheses):
    decorator = callback.register_c_postproc_callback
    decorated = (decorator() if parentheses else decorator)(five_for_three)
    assert decorated is five_for_three
    assert torch.equal(compiled()(ONES), 5 * ONES)


NAMES = {
    "cuda": "tilelang_callback_cuda_postproc",
    "hip": "tilelang_callback_hip_postproc",
    "metal": "tilelang_callback_metal_postproc",
    "c": "tilelang_callback_c_host_postproc",
}


@pytest.mark.parametrize("kind", NAMES)
def test_every_kind_has_both_forms_under_its_public_name(kind):
    name = NAMES[kind]
    getattr(callback, f"register_{kind}_postproc")(lambda source, target: "first")
    assert tvm_ffi.get_global_func(name)("", None) == "first"
    getattr(callback, f"register_{kind}_postproc_callback")(lambda source, target: "second")
    assert tvm_ffi.get_global_func(name)("", None) == "second"


def test_without_override_a_second_one_is_refused():
    tilelang.register_c_postproc(five_for_three)
    with pytest.raises(BackendError, match="'c' has a source callback already"):
        tilelang.register_c_postproc(five_for_three, override=False)


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (lambda source, target: 1 // 0, "callback of target kind 'c' failed: integer division"),
        (lambda source, target: None, "returns the edited source text, found NoneType"),
    ],
)
def test_a_callback_that_fails_is_named(func, message):
    tilelang.register_c_postproc(func)
    with pytest.raises(CodegenError, match=message):
        compiled()
