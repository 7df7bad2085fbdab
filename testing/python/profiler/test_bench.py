"""do_bench: what is returned, how often the function is called, what is refused."""

from __future__ import annotations

import time

import pytest
import torch

from tilelang.errors import UnsupportedError
from tilelang.profiler import do_bench
from tilelang.profiler.bench import summarize
from tilelang.testing import requires_cuda


def test_latency_is_in_milliseconds():
    latency = do_bench(lambda: time.sleep(0.002), warmup=0, rep=10, device="cpu")
    assert 2 <= latency < 20


def test_counts_replace_durations():
    calls = []
    do_bench(lambda: calls.append(time.sleep(1e-3)), _n_warmup=3, _n_repeat=4, device="cpu")
    assert len(calls) == 1 + 5 + 3 + 4


def test_short_calls_are_timed_in_groups():
    calls = []
    latency = do_bench(lambda: calls.append(0), warmup=1, rep=2, device="cpu")
    assert 0 < latency < 0.01
    assert len(calls) > 100


def test_summaries():
    times = [1.0, 2.0, 3.0, 10.0]
    assert summarize(times, None, "mean") == 4.0
    assert summarize(times, None, "min") == 1.0
    assert summarize(times, None, "max") == 10.0
    assert summarize(times, None, "median") == 2.5
    assert summarize(times, [0.5], "mean") == 2.5
    assert summarize(times, [0.0, 1.0], "mean") == [1.0, 10.0]


def test_early_stop_returns_the_estimate():
    calls = []

    def slow():
        calls.append(time.sleep(1e-3))

    latency = do_bench(slow, early_stop_baseline=0.01, device="cpu")
    assert latency > 0.9
    assert len(calls) == 1 + 5


@requires_cuda
@pytest.mark.parametrize("backend", ["event", "cupti", "cudagraph"])
def test_gpu_clocks_agree_about_a_large_copy(backend):
    source = torch.empty(1 << 26, device="cuda")
    target = torch.empty_like(source)
    latency = do_bench(lambda: target.copy_(source), backend=backend, return_mode="median")
    bytes_per_second = 2 * source.numel() * 4 / (latency * 1e-3)
    assert 5e10 < bytes_per_second < 2e13


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"return_mode": "avg"}, ValueError, "return_mode must be one of mean, min, max, median"),
        ({"quantiles": [1.5]}, ValueError, "between 0 and 1, found 1.5"),
        ({"warmup": -1}, ValueError, "milliseconds, found -1"),
        ({"backend": "cupti"}, UnsupportedError, "'cupti' is not available on backend 'cpu'"),
    ],
)
def test_mistakes(options, error, message):
    with pytest.raises(error, match=message):
        do_bench(lambda: None, **{"device": "cpu", **options})
