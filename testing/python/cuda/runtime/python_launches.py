"""Runs calls through both launchers of CUDA kernels and prints what each did, as JSON.

A program of its own: the stand-in for the driver serves cuda-python too, for as long as the
process lives.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import tvm_ffi
from fake_cuda_driver import FakeDriver, cuda_tensor, on_device, plan_of

from tilelang.cuda.device_code import make_launcher
from tilelang.cuda.python_launcher import make_python_launcher
from tilelang.engine.expr_program import Sym
from tilelang.engine.launch_plan import ArgRef, KernelLaunch, LaunchPlan, Param, Workspace
from tilelang.env import env

N = Sym(0)
A = cuda_tensor("A", N, align=16)
OUT = cuda_tensor("B", N, role="out")
VALUES = torch.arange(32.0)


def scenarios() -> Iterator[tuple[str, LaunchPlan, tuple[Any, ...], dict[str, int]]]:
    """Name, plan, arguments, and failures to inject."""
    a = on_device(VALUES)
    plain = plan_of(A, Param("x", "scalar", "float64"), Param("p", "pointer", "uint8"))
    yield "plain", plain, (a, 0.5, 0x1000), {}
    yield "device 1", plain, (on_device(VALUES, 1), 0.5, 0), {}
    yield "no grid", plan_of(A, kernel={"grid": (0, 1, 1)}), (a,), {}
    yield "flags", plan_of(A, kernel={"flags": ("cooperative", "pdl")}), (a,), {}
    yield "cluster", plan_of(A, kernel={"grid": (16, 1, 1), "cluster": (16, 1, 1)}), (a,), {}
    yield "shared", plan_of(A, kernel={"dyn_smem": ("*", N, 3000)}), (a,), {}
    yield "too much shared", plan_of(A, kernel={"dyn_smem": 200_000}), (a,), {}
    yield "too many threads", plan_of(A, kernel={"block": (2048, 1, 1)}), (a,), {}
    memory = (Workspace("int8", (N,)),)
    args = tuple(ArgRef(kind, 0) for kind in ("param", "symbol", "workspace"))
    yield "workspace", plan_of(A, workspaces=memory, kernel={"args": args}), (a,), {}
    kernels = (KernelLaunch("scale", args=args[:1]), KernelLaunch("other", args=args[1:2]))
    yield "two kernels", LaunchPlan("f", ("n",), (A,), kernels=kernels), (a,), {}
    yield "output", plan_of(A, OUT, kernel={"args": args[:1]}), (a,), {}
    yield "no tensor", plan_of(Param("n", "scalar", "int32", symbol=0)), (5,), {}
    yield "wrong dtype", plain, (on_device(VALUES.int()), 0.5, 0), {}
    yield "wrong device", plain, (VALUES, 0.5, 0), {}
    yield "unaligned", plain, (on_device(VALUES[1:]), 0.5, 0), {}
    yield "lost context", plain, (a, 0.5, 0), {"cuLaunchKernelEx": 700}
    yield "too large", plain, (a, 0.5, 0), {"cuLaunchKernelEx": 720}
    yield "other arch", plain, (a, 0.5, 0), {"cuModuleLoadData": 209}


def binaries(plan: LaunchPlan) -> dict[str, bytes]:
    """An image for the fake driver: every parameter has eight bytes."""
    lines = [kernel.entry + " 8" * len(kernel.args) for kernel in plan.kernels]
    return {"kernel.cubin": "\n".join(lines).encode() + b"\0", "kernel.archs": b"sm_80"}


def record(driver: FakeDriver, run: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """What one call returned or raised, and what it asked of the driver."""
    with driver.allocator(), tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), 0x77):
        try:
            result = run(*args)
            shown = None if result is None else [str(result.device), list(result.shape)]
        except Exception as error:  # noqa: BLE001  (errors are compared)
            shown = [type(error).__name__, str(error)]
    return {"result": shown, "calls": driver.calls}


def main(folder: str) -> None:
    driver = FakeDriver(Path(folder), stand_in=True)
    makers = {"native": make_launcher, "python": make_python_launcher}
    out: dict[str, dict[str, Any]] = {}
    with env.scope(TILELANG_CUDA_DRIVER=driver.path):
        for name, plan, args, failures in scenarios():
            for kind, make in makers.items():
                run = make(plan, binaries(plan), {"scale": ("k.py", 3)})
                driver.reset()
                for function, code in failures.items():
                    driver.fail(function, code)
                out.setdefault(name, {})[kind] = record(driver, run, args)
                del run
    print(json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1])
