"""Run a program in the interpreter and on the CPU targets, and compare bit for bit."""

from __future__ import annotations

import torch

import tilelang
from tilelang.interpreter import interpret

TARGETS = ("llvm", "c")
EMULATED = "emulated cuda"
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def execute(program, args, target, out_idx=None):
    """Tensors after a run on copies of ``args``: those passed, then the outputs.

    ``target`` is ``"llvm"``, ``"c"``, ``"interpreter"`` or :data:`EMULATED`.
    """
    args = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    if target == "interpreter":
        outputs = interpret(program, *args, out_idx=out_idx)
    elif target == EMULATED:
        kernel = tilelang.compile(
            program,
            target={"kind": "cuda", "arch": "sm_90a"},
            execution_backend="emulator",
            out_idx=out_idx,
        )
        outputs = kernel(*args)
    else:
        outputs = tilelang.compile(program, target=target, out_idx=out_idx)(*args)
    if outputs is None:
        outputs = []
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    return [a for a in args if isinstance(a, torch.Tensor)] + outputs


def bits(tensor):
    """The bit patterns; all NaN are one pattern, because their payload is not specified."""
    if tensor.dtype == torch.bool or not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    if tensor.itemsize == 1:
        return tensor.contiguous().view(torch.uint8)
    nan = tensor.isnan()
    pattern = tensor.contiguous().view(_INTEGERS[tensor.itemsize])
    return torch.where(nan, torch.full_like(pattern, -1), pattern)


def assert_same_bits(actual, expected, what=""):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, what
    a, b = bits(actual), bits(expected)
    if not torch.equal(a, b):
        where = (a != b).nonzero()
        first = tuple(where[0].tolist())
        raise AssertionError(
            f"{what}: {len(where)} elements differ, first at {first}: "
            f"{actual[first].item()} instead of {expected[first].item()}"
        )


def check(program, *args, out_idx=None, targets=(*TARGETS, EMULATED)):
    """Assert that the targets agree with the interpreter; returns the tensors it produced."""
    expected = execute(program, args, "interpreter", out_idx)
    for target in targets:
        for i, (a, b) in enumerate(
            zip(execute(program, args, target, out_idx), expected, strict=True)
        ):
            assert_same_bits(a, b, f"tensor {i} on {target}")
    return expected
