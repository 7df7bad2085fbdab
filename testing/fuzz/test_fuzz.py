"""A bounded slice of the fuzzer for every run of the tests, and the programs that once failed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from testing.fuzz.execute import check, load_source, run
from testing.fuzz.programs import Program, programs, render

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.py"))
_BOUNDED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@_BOUNDED
@given(programs())
def test_llvm_agrees_with_the_interpreter(program: Program) -> None:
    check(render(program))


@settings(_BOUNDED, max_examples=6)
@given(programs())
def test_c_agrees_with_the_interpreter(program: Program) -> None:
    check(render(program), ("interpreter", "c"))


@settings(_BOUNDED, max_examples=12)
@given(programs())
def test_hints_do_not_change_results(program: Program) -> None:
    hinted = dataclasses.replace(program, stages=3, threads=64, scope="alloc_shared")
    plain = dataclasses.replace(program, stages=0, threads=128, scope="alloc_fragment")
    outputs = [run(load_source(render(p)), "llvm") for p in (hinted, plain)]
    assert bool((outputs[0] == outputs[1]).all())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus(path: Path) -> None:
    check(path.read_text(), ("interpreter", "llvm", "c"))
