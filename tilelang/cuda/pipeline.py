"""The passes of CUDA kernels, in order; shared by the CUDA and the CuTe DSL backend."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import tvm
from tvm import tirx as T
from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.pass_pipeline.pipeline import run_steps
from tilelang.backend.pass_pipeline.step import TARGET, IRLevel, PassStep, tvm_pass
from tilelang.cuda.intrinsics.requirements import check_requirements
from tilelang.cuda.limits import Limits, check_limits, limits_of
from tilelang.cuda.op import bodies
from tilelang.cuda.op.gemm import matrix_operands
from tilelang.cuda.op.storage import shared_layouts
from tilelang.cuda.transform.launch_facts import record_launch_facts
from tilelang.cuda.transform.matrix_calls import expand_matrix_calls
from tilelang.cuda.transform.numerics import legalize_numerics
from tilelang.cuda.transform.random_state import check_random_state
from tilelang.cuda.transform.scalar_products import expand_scalar_products
from tilelang.ir.support import check_support
from tilelang.transform.guard_accesses import guard_accesses
from tilelang.transform.simt.converge import converge_branches
from tilelang.transform.simt.expand import expand_elementwise
from tilelang.transform.simt.hoist import hoist_views
from tilelang.transform.simt.lower import ThreadProgram
from tilelang.transform.simt.place import place_memory
from tilelang.transform.simt.rasterize import rasterize_blocks
from tilelang.transform.simt.simplify import simplify_indices
from tilelang.transform.simt.software_pipeline import pipeline_loops
from tilelang.transform.simt.sparse import expand_sparse_products

__all__ = ["CUDA_STEPS", "lower_cuda"]

_P = T.transform


def _each(
    name: str, rewrite: Callable[[T.PrimFunc, Limits], T.PrimFunc]
) -> Callable[[IRModule, Target], IRModule]:
    """A module pass from a function rewrite that knows the limits of the target."""

    def run(mod: IRModule, target: Target) -> IRModule:
        limits = limits_of(target)
        return tvm.IRModule(
            {gv.name_hint: rewrite(func, limits) for gv, func in mod.functions.items()}
        )

    run.__name__ = name
    return run


def _threads(func: T.PrimFunc, limits: Limits) -> T.PrimFunc:
    program = ThreadProgram(
        bodies(limits.arch),
        lambda threads: SimpleNamespace(
            operands=partial(matrix_operands, threads=threads, arch=limits.arch)
        ),
        "cuda",
        lambda sites, threads: shared_layouts(sites, threads, limits.arch),
    )
    return program(func)


def _step(
    name: str,
    rewrite: Callable[[T.PrimFunc, Limits], T.PrimFunc],
    reason: str,
    establishes: IRLevel | None = None,
) -> PassStep:
    return PassStep(_each(name, rewrite), reason, name, establishes)


CUDA_STEPS: tuple[PassStep, ...] = (
    _step(
        "check_support",
        lambda func, _: check_support(func, "cuda"),
        "what the backend lacks is refused while tile operations still have their names",
    ),
    _step(
        "check_requirements",
        lambda func, limits: check_requirements(func, limits.arch),
        "instructions the device lacks are refused at the user's call",
    ),
    _step(
        "check_random_state",
        lambda func, _: check_random_state(func),
        "a state that was never started is refused at the user's call",
    ),
    _step("check_limits", check_limits, "a launch the device cannot make is refused first"),
    _step(
        "record_launch_facts",
        lambda func, limits: record_launch_facts(func, limits.arch),
        "the launch keeps its annotations until its index loops are rebuilt",
    ),
    _step(
        "expand_matrix_calls",
        lambda func, limits: expand_matrix_calls(func, limits.arch),
        "their operands take part in everything else as elements of buffers",
    ),
    _step(
        "expand_sparse_products",
        lambda func, _: expand_sparse_products(func),
        "a dense product has a plan, or becomes a nest",
    ),
    _step(
        "expand_scalar_products",
        lambda func, limits: expand_scalar_products(func, limits.arch),
        "a nest takes part in layout inference like any other",
    ),
    _step(
        "expand_elementwise",
        lambda func, _: expand_elementwise(func),
        "guards and layouts are decided on nests",
    ),
    _step(
        "hoist_views",
        lambda func, _: hoist_views(func),
        "a nest holds nothing but the work of its iterations",
    ),
    _step(
        "converge_branches",
        lambda func, _: converge_branches(func),
        "needs to tell nests of the block from loops of a thread",
    ),
    _step(
        "guard_accesses",
        lambda func, _: guard_accesses(func, hoist=False),
        "vectors may be as wide as their guards allow",
    ),
    _step(
        "pipeline_loops",
        lambda func, _: pipeline_loops(func),
        "what is proved of an iteration holds for its copies, wherever they run",
    ),
    _step("lower_to_threads", _threads, "tiles become registers", IRLevel.LOOPS),
    _step(
        "legalize_numerics",
        lambda func, _: legalize_numerics(func),
        "before anything simplifies",
    ),
    _step(
        "place_memory",
        lambda func, limits: place_memory(func, limits.shared_bytes),
        "needs every access of the thread program",
        IRLevel.STORAGE,
    ),
    _step(
        "simplify_indices",
        lambda func, _: simplify_indices(func),
        "offsets are complete; the printer shows them as they are",
    ),
    _step(
        "rasterize_blocks",
        lambda func, _: rasterize_blocks(func),
        "what was proved of the grid holds for any order of its blocks",
    ),
    tvm_pass(_P.ConvertSSA, "loop variables of one op may repeat"),
    tvm_pass(_P.BindTarget, "code generation reads the architecture", TARGET),
)


def lower_cuda(mod: IRModule, target: Target) -> IRModule:
    """Lower device functions to thread programs for ``target``."""
    return run_steps(CUDA_STEPS, mod, target)
