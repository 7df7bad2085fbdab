"""What a call of a CUDA kernel costs on the host, beside a bare loop of driver launches.

    python benchmark/gpu/launch_overhead.py [--rounds 50] [--out FILE]

Prints one JSON line for every way to launch the same kernel with three tensors: ``us`` is the
median time of a call, ``over_bare_us`` what it takes more than ``cuLaunchKernelEx`` in a C++ loop
of the same process. The ways take turns; a round is short enough for the launch queue. The kernel
is written by hand, so the figures owe nothing to the code generator. Exit status 1 says that a
result was wrong or that a call through ``JITKernel`` took over 1.0 µs more than the bare launch.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import tvm_ffi

import tilelang.language as T
from tilelang.backend import create_backend_context
from tilelang.engine.artifact import CompiledArtifact
from tilelang.engine.launch_plan import ArgRef, KernelLaunch, LaunchPlan, Param
from tilelang.env import env
from tilelang.errors import BackendError
from tilelang.jit.adapter import KernelBundle, find_adapter
from tilelang.jit.kernel import JITKernel
from tilelang.jit.request import CompileRequest

COUNT = 1024
CALLS = 400  # a round: fewer than the launches that a stream queues without blocking
LIMIT_US = 1.0
SOURCE = """
extern "C" __global__ void add(const float* a, const float* b, float* c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = a[i] + b[i];
}
"""


@T.prim_func
def program(
    A: T.Tensor((COUNT,), "float32"),
    B: T.Tensor((COUNT,), "float32"),
    C: T.Tensor((COUNT,), "float32"),
) -> None:
    """The program whose kernel ``SOURCE`` is."""
    with T.Kernel(1, threads=COUNT):
        for i in T.Parallel(COUNT):
            C[i] = A[i] + B[i]


def make_plan() -> LaunchPlan:
    """How the kernel is called."""
    params = tuple(
        Param(name, "tensor", "float32", "cuda", (COUNT,), access="w" if name == "C" else "r")
        for name in "ABC"
    )
    args = tuple(ArgRef("param", index) for index in range(3))
    launch = KernelLaunch("add", grid=(1, 1, 1), block=(COUNT, 1, 1), args=args)
    return LaunchPlan("program", params=params, kernels=(launch,))


def make_kernels() -> Iterator[tuple[str, JITKernel]]:
    """The kernel on every execution backend that works here."""
    for name in ("tvm_ffi", "cython", "nvrtc"):
        try:
            context = create_backend_context("cuda", None, name)
        except BackendError as error:
            print(json.dumps({"w": "launch_overhead", "way": name, "skipped": str(error)}))
            continue
        artifact = CompiledArtifact(
            None, None, (), SOURCE, target=context.target, plan=make_plan(),
            device_compiler=context.device_compiler,
        )  # fmt: skip
        adapter = find_adapter(name)
        bundle = adapter.build(artifact, ())
        yield name, JITKernel(CompileRequest.make(program, context), adapter(bundle))


def timed(call: Callable[..., object], *args: object, **options: object) -> Callable[[], float]:
    """A function that measures a round of calls, in microseconds each."""
    return functools.partial(_time_calls, call, args, options)


def _time_calls(call: Callable[..., object], args: tuple, options: dict) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call(*args, **options)
    return (time.perf_counter() - start) / CALLS * 1e6


def bare_launch(bundle: KernelBundle, tensors: tuple[torch.Tensor, ...]) -> Callable[[], float]:
    """A function that measures a round of bare launches, in microseconds each."""
    loop = tvm_ffi.get_global_func("tl.cuda.time_launches")
    code = bundle.binaries["kernel.cubin"]
    extents = (1, 1, 1, COUNT, 1, 1, 0)
    addresses = [tensor.data_ptr() for tensor in tensors]
    device = tensors[0].device.index

    def measure() -> float:
        torch.cuda.synchronize()
        stream = torch.cuda.current_stream().cuda_stream
        driver = env.TILELANG_CUDA_DRIVER
        seconds = loop(driver, code, "add", extents, addresses, device, stream, CALLS)
        return float(seconds) / CALLS * 1e6

    return measure


def make_ways() -> dict[str, Callable[[], float]]:
    """Name of each way to launch, and a function that measures a round of it."""
    a, b = torch.rand(COUNT, device="cuda"), torch.rand(COUNT, device="cuda")
    c = torch.empty_like(a)
    ways: dict[str, Callable[[], float]] = {}
    for name, kernel in make_kernels():
        ways.setdefault("bare", bare_launch(kernel.adapter.bundle, (a, b, c)))
        c.zero_()
        kernel(a, b, c)
        torch.testing.assert_close(c, a + b, rtol=0, atol=0)
        ways[name] = timed(kernel, a, b, c)
        ways[f"{name} native"] = timed(kernel.torch_function, a, b, c)
    ways["torch.add"] = timed(torch.add, a, b, out=c)
    ways["empty call"] = timed(lambda *_: None, a, b, c)
    return ways


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50, help="rounds of each way")
    parser.add_argument("--out", type=Path, help="append the lines to this file too")
    options = parser.parse_args()
    ways = make_ways()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(options.rounds + 5):
        for name, measure in ways.items():
            microseconds = measure()
            if number >= 5:  # the first rounds warm up
                times[name].append(microseconds)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        line = json.dumps(
            {
                "w": "launch_overhead",
                "way": name,
                "us": round(median, 3),
                "min_us": round(min(times[name]), 3),
                "over_bare_us": round(median - medians["bare"], 3),
                "device": torch.cuda.get_device_name(),
            }
        )
        print(line, flush=True)
        if options.out is not None:
            with options.out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
    return int(min(medians["tvm_ffi"], medians["cython"]) - medians["bare"] > LIMIT_US)


if __name__ == "__main__":
    sys.exit(main())
