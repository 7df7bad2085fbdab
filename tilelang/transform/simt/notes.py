"""Remarks of passes for the user, kept with the function."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx as T

__all__ = ["NOTES", "with_notes"]

NOTES = "tl.notes"


def with_notes(func: T.PrimFunc, notes: Sequence[str]) -> T.PrimFunc:
    """``func`` with further remarks: why something fell off the fast path."""
    known = [str(note) for note in (func.attrs or {}).get(NOTES, ())]
    added = [note for note in notes if note not in known]
    return func.with_attr(NOTES, [*known, *added]) if added else func
