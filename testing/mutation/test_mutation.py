"""Every planted bug must be noticed by the kernel made for it, and no kernel may cry wolf."""

from __future__ import annotations

import os

import pytest

from testing.mutation.edit import Mutation, StaleMutation, planted
from testing.mutation.mutations import MUTATIONS
from testing.mutation.registry import names
from testing.mutation.run import difference, run_mutation
from testing.mutation.simt_mutations import SIMT_MUTATIONS
from tilelang.transform import guard_accesses

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="runs bugs in forked processes")


@pytest.mark.parametrize("name", names())
def test_without_mutation_all_agree(name):
    assert difference(name) is None


@pytest.mark.parametrize("name", sorted({n for m in SIMT_MUTATIONS for n in m.kernels}))
def test_without_mutation_emulated_cuda_agrees(name):
    assert difference(name, "cuda") is None


@needs_fork
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_planted_bug_is_noticed(mutation):
    verdict = run_mutation(mutation, thorough=False)
    assert verdict.killed, f"no kernel of {mutation.kernels} notices; write one that does"


def _mutation(where, *edits):
    return Mutation("test", where, edits, ())


def test_a_bug_is_gone_after_the_block():
    before = guard_accesses._reads.__code__
    with planted(_mutation("tilelang.transform.guard_accesses:_reads", ("bool(found)", "False"))):
        assert guard_accesses._reads.__code__ is not before
        assert guard_accesses._reads(None) is False
    assert guard_accesses._reads.__code__ is before


@pytest.mark.parametrize(
    ("where", "before", "message"),
    [
        ("tilelang.transform.guard_accesses:_gone", "x", "is no function or dict"),
        ("tilelang.transform.guard_accesses:_reads", "gone()", "occurs 0 times"),
        ("tilelang.transform.guard_accesses:_reads", "found", "occurs 2 times"),
    ],
)
def test_code_that_is_not_there_any_more_is_named(where, before, message):
    with pytest.raises(StaleMutation, match=message), planted(_mutation(where, (before, "y"))):
        pass
