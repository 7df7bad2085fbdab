"""What layout inference decides about a program, and a check of it by enumeration."""

from __future__ import annotations

import itertools
from unittest import mock

from lowered import device_function, lowered
from owner_sets import holders
from tvm import ir, sym
from tvm import tirx as T
from tvm_ffi import structural_map

from tilelang.ir.expr import const_int
from tilelang.transform.simt import lower
from tilelang.transform.simt.sites import nest_fragments

__all__ = ["access_faults", "inferred"]


def inferred(program, arch="sm_80"):
    """``(sites, Inferred, notes)`` of the only kernel of ``program``."""
    seen = []
    original = lower.infer_layouts

    def spy(sites, *args):
        result = original(sites, *args)
        seen.append((sites, result))
        return result

    with mock.patch.object(lower, "infer_layouts", spy):
        func = device_function(lowered(program, arch))
    ((sites, result),) = seen
    return sites, result, [str(note) for note in func.attrs.get("tl.notes", ())]


def access_faults(program, arch="sm_80"):
    """Accesses of tiles in parallel nests whose thread does not hold the element, as text.

    A written element must be written in all of its owners.
    """
    sites, found, _ = inferred(program, arch)
    faults = []
    for nest, loop in zip(sites.nests, found.nests, strict=True):
        if loop is None:
            continue
        runs = holders(loop)
        for access in _tile_accesses(nest, found):
            tile = holders(found.tiles[access.buffer])
            written = {}
            for iteration, threads in runs.items():
                for index in _indices(access, nest, iteration):
                    if not threads <= tile[index] and not access.is_write:
                        faults.append(f"{access.buffer.name}{index} is read by {sorted(threads)}")
                    written.setdefault(index, set()).update(threads)
            if access.is_write:
                faults += [
                    f"{access.buffer.name}{index} is written by {sorted(threads)}"
                    for index, threads in written.items()
                    if threads != tile[index]
                ]
    return faults[:3]


def _tile_accesses(nest, found):
    return [
        access
        for access in nest_fragments(nest)
        if access.buffer in found.tiles and access.buffer not in found.spilled
    ]


def _indices(access, nest, iteration):
    """The elements an iteration touches; dimensions that run in inner loops count whole."""
    values = {
        var: T.const(value, "int32") for var, value in zip(nest.variables, iteration, strict=True)
    }
    analyzer = sym.Analyzer()
    ranges = []
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        value = const_int(analyzer.simplify(_substituted(index, values)))
        ranges.append(range(int(extent)) if value is None else [value])
    return itertools.product(*ranges)


def _substituted(index, values):
    return structural_map(index, (ir.Var, lambda v: values.get(v, v)))
