"""A bounded slice of the fuzzer for every run of the tests, and the programs that once failed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from testing.fuzz.execute import check, compare, execute, load_source
from testing.fuzz.program import Program, render
from testing.fuzz.programs import FAMILIES, programs

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.py"))
_BOUNDED = settings(
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),  # a failure is shrunk by ``python -m testing.fuzz``
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("family", FAMILIES)
def test_llvm_agrees_with_the_interpreter(family):
    @settings(_BOUNDED, max_examples=24 if family == "tiles" else 16)
    @given(programs(family))
    def agrees(program: Program) -> None:
        check(render(program))

    agrees()


@settings(_BOUNDED, max_examples=8)
@given(programs())
def test_c_agrees_with_the_interpreter(program: Program) -> None:
    check(render(program), ("interpreter", "c"))


@pytest.mark.parametrize("family", FAMILIES)
def test_emulated_cuda_agrees_with_the_interpreter(family):
    @settings(_BOUNDED, max_examples=8 if family == "tiles" else 4)
    @given(programs(family))
    def agrees(program: Program) -> None:
        check(render(program), ("interpreter", "cuda"))

    agrees()


@settings(_BOUNDED, max_examples=10)
@given(programs())
def test_hints_do_not_change_results(program: Program) -> None:
    """Neither stages, policy, swizzle, vector width, the place of the tile, nor free threads."""
    _compare_hints(program, "llvm", threads=32)


@settings(_BOUNDED, max_examples=4)
@given(programs())
def test_hints_do_not_change_results_of_emulated_cuda(program: Program) -> None:
    _compare_hints(program, "cuda", threads=96)


def _compare_hints(program: Program, how: str, threads: int) -> None:
    plain = program.hinted(stages=0, policy="Square", swizzle=0, width=None, scope="alloc_fragment")
    other = program.hinted(stages=3, policy="FullCol", swizzle=2, width=4, scope="alloc_shared")
    if program.free_threads:
        plain, other = plain.hinted(threads=128), other.hinted(threads=threads)
    offset = 0 if how == "cuda" else program.offset
    plain, other = (dataclasses.replace(p, offset=offset) for p in (plain, other))
    sources = [load_source(render(p)) for p in (plain, other)]
    assert compare(*(execute(source, how) for source in sources)) is None


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus(path):
    check(path.read_text(), ("interpreter", "llvm", "c", "cuda"))
