"""Kernels lowered for a CUDA device and run by the block machine, beside their reference."""

from __future__ import annotations

import numpy as np
import torch
from block_machine import BlockMachine
from block_memory import numpy_dtype

import tilelang
from tilelang.interpreter import interpret

__all__ = ["arrays_of", "device_function", "lowered", "machine_of", "run_program"]

_SEED = 7


def lowered(program, arch="sm_80", **options):
    """The compiled artifact of a program with one launch."""
    return tilelang.lower(program, target={"kind": "cuda", "arch": arch}, **options)


def device_function(artifact):
    """The thread program of the only launch."""
    (func,) = artifact.device_mod.functions.values()
    return func


def arrays_of(artifact, seed=_SEED):
    """Small whole numbers for every tensor: sums of them are exact in any order."""
    random = np.random.default_rng(seed)
    made = {}
    for param in artifact.plan.params:
        if param.kind != "tensor":
            continue
        shape = tuple(int(e) for e in param.shape)
        made[param.name] = random.integers(-3, 4, shape).astype(numpy_dtype(param.dtype))
    return made


def machine_of(artifact, tensors, scalars=None):
    """A machine for the artifact's kernel."""
    return BlockMachine(device_function(artifact), tensors, scalars)


def run_program(program, arch="sm_80", seed=_SEED, scalars=None, **given):
    """Run all blocks of ``program`` and of the interpreter on the same data; both results.

    Returns the machine too, for what it counted.
    """
    artifact = lowered(program, arch)
    tensors = {**arrays_of(artifact, seed), **given}
    expected = {name: _to_torch(array.copy()) for name, array in tensors.items()}
    machine = machine_of(artifact, tensors, scalars)
    (kernel,) = artifact.plan.kernels
    machine.run_grid([int(e) for e in kernel.grid])
    interpret(program, *expected.values())
    for name, array in tensors.items():
        np.testing.assert_array_equal(array, _to_numpy(expected[name], array.dtype), err_msg=name)
    return machine


def _to_torch(array):
    """The same numbers as a tensor; torch shares no memory for types that numpy lacks."""
    if array.dtype.kind != "V" and array.dtype.type.__module__ == "numpy":
        return torch.from_numpy(array)
    bits = array.view(f"uint{array.itemsize * 8}")
    return torch.from_numpy(bits).view(getattr(torch, array.dtype.name))


def _to_numpy(tensor, dtype):
    if dtype.type.__module__ == "numpy":
        return tensor.numpy()
    return tensor.view(getattr(torch, f"uint{dtype.itemsize * 8}")).numpy().view(dtype)
