"""All mutations."""

from __future__ import annotations

from testing.mutation.edit import Mutation
from testing.mutation.op_mutations import OP_MUTATIONS
from testing.mutation.program_mutations import PROGRAM_MUTATIONS
from testing.mutation.simt_mutations import SIMT_MUTATIONS
from testing.mutation.transform_mutations import TRANSFORM_MUTATIONS

__all__ = ["MUTATIONS"]

MUTATIONS: tuple[Mutation, ...] = (
    *TRANSFORM_MUTATIONS,
    *OP_MUTATIONS,
    *PROGRAM_MUTATIONS,
    *SIMT_MUTATIONS,
)
