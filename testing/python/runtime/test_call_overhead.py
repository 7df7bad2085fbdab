"""The cost of a call; targets are relative to a bare tvm-ffi call with the same arguments."""

import time

import pytest
import torch
from launch_helpers import M, N, plan_of, tensor

from tilelang._native import make_cpu_launcher

BARE_CALL_US = 0.37  # a bare tvm-ffi call with three torch tensors on the reference machine


def best_time_us(function, args, repeat=30, number=3000):
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(number):
            function(*args)
        best = min(best, (time.perf_counter() - start) / number)
    return best * 1e6


@pytest.mark.perf
def test_call_with_three_tensors(workers):
    params = tensor("A", N, M), tensor("B", N, M), tensor("C", N, M, access="w")
    run = make_cpu_launcher(plan_of(*params, grid=(1, 1, 1)), [workers["nothing"]])
    args = tuple(torch.ones(64, 64) for _ in range(3))
    assert best_time_us(run, args) <= BARE_CALL_US + 0.5
