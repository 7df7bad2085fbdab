"""The passes of the CPU backend, in order."""

from __future__ import annotations

from collections.abc import Callable

import tvm
from tvm import tirx as T
from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.pass_pipeline.pipeline import run_steps
from tilelang.backend.pass_pipeline.step import TARGET, IRLevel, PassStep, neutral, tvm_pass
from tilelang.cpu.features import features_of
from tilelang.cpu.op import Lowering
from tilelang.cpu.transform.atomics import define_updates, lower_updates
from tilelang.cpu.transform.constants import fold_constant_bits
from tilelang.cpu.transform.debug import lower_debug
from tilelang.cpu.transform.early_return import check_returns
from tilelang.cpu.transform.jumps import lower_jumps
from tilelang.cpu.transform.lower_tile_ops import lower_element_updates, lower_tile_ops
from tilelang.cpu.transform.numerics import expand_numerics, legalize_numerics
from tilelang.cpu.transform.scalarize import scalarize_vectors
from tilelang.cpu.transform.sequential import sequential_loops
from tilelang.cpu.transform.storage import plan_storage
from tilelang.cpu.transform.threads import split_thread_program
from tilelang.cpu.transform.vectorize import vectorize_parallel
from tilelang.cpu.transform.worker import block_loop, make_worker, pointer_body
from tilelang.ir.support import check_support
from tilelang.transform.guard_accesses import guard_accesses
from tilelang.transform.pass_config import PassConfigKey
from tilelang.transform.pass_context import get_pass_context

__all__ = ["CPU_STEPS", "lower_cpu"]

_P = T.transform


def _each(name: str, rewrite: Callable[[T.PrimFunc], T.PrimFunc]) -> Callable[[IRModule], IRModule]:
    """A module pass from a function rewrite."""

    def run(mod: IRModule) -> IRModule:
        return tvm.IRModule({gv.name_hint: rewrite(func) for gv, func in mod.functions.items()})

    run.__name__ = name
    return run


def _lower_ops(mod: IRModule, target: Target) -> IRModule:
    ctx = Lowering(features_of(target), blocked=_is_llvm(target))
    return _each("ops", lambda func: lower_element_updates(lower_tile_ops(func, ctx)))(mod)


def _pack(mod: IRModule) -> IRModule:
    functions = {}
    for gv, func in mod.functions.items():
        name = gv.name_hint
        worker, body = make_worker(name, func)
        functions[f"__tvm_ffi_{name}"] = worker
        functions[f"{name}_body"] = body
    return tvm.IRModule(functions)


def _vectorize_parallel(mod: IRModule, target: Target) -> IRModule:
    if not _is_llvm(target):
        return mod
    features = features_of(target)
    return _each("vectorize", lambda func: vectorize_parallel(func, features))(mod)


def _vectorize(mod: IRModule, target: Target) -> IRModule:
    return _P.VectorizeLoop(True)(mod) if _is_llvm(target) else mod


def _unroll(mod: IRModule, target: Target) -> IRModule:
    return _P.UnrollLoop()(mod) if _is_llvm(target) else mod


def _lower_intrin(mod: IRModule, target: Target) -> IRModule:
    return _P.LowerIntrin()(mod) if _is_llvm(target) else mod


def _legalize_numerics(mod: IRModule, target: Target) -> IRModule:
    fast = bool(get_pass_context().config.get(PassConfigKey.TL_ENABLE_FAST_MATH, False))
    return _each("numerics", lambda func: legalize_numerics(func, fast_math=fast))(mod)


def _expand_numerics(mod: IRModule, target: Target) -> IRModule:
    kind = str(target.kind.name)
    return _each("numerics", lambda func: expand_numerics(func, kind))(mod)


def _lower_jumps(mod: IRModule, target: Target) -> IRModule:
    return _each("jumps", lower_jumps)(mod) if _is_llvm(target) else mod


def _define_updates(mod: IRModule, target: Target) -> IRModule:
    return _each("updates", define_updates)(mod) if _is_llvm(target) else mod


def _scalarize(mod: IRModule, target: Target) -> IRModule:
    return mod if _is_llvm(target) else _each("scalarize", scalarize_vectors)(mod)


def _is_llvm(target: Target) -> bool:
    return str(target.kind.name) == "llvm"


CPU_STEPS: tuple[PassStep, ...] = (
    neutral(
        _each("check_support", lambda func: check_support(func, "cpu")),
        "what the backend lacks is refused while tile operations still have their names",
    ),
    neutral(_each("check_returns", check_returns), "later, parallel loops look like others"),
    neutral(_each("split_thread_program", split_thread_program), "a block runs on one core"),
    neutral(_each("lower_debug", lower_debug), "what it reads must be guarded"),
    PassStep(_lower_ops, "everything below works on loops", "lower_tile_ops", IRLevel.LOOPS),
    neutral(
        _each("guard_accesses", guard_accesses), "needs the parallel nests that tile ops became"
    ),
    neutral(_each("lower_updates", lower_updates), "guards are made for stores, not for calls"),
    PassStep(_vectorize_parallel, "only parallel loops may be reordered", "vectorize_parallel"),
    neutral(_each("sequential_loops", sequential_loops), "parallel nests are spent once guarded"),
    tvm_pass(_P.ConvertSSA, "the guarded and the plain copy of a nest share variables"),
    PassStep(_legalize_numerics, "before anything simplifies", "legalize_numerics"),
    neutral(_each("block_loop", block_loop), "one function runs many blocks"),
    neutral(_each("pointer_body", pointer_body), "code generators take flat buffers and pointers"),
    neutral(
        _each("plan_storage", plan_storage),
        "needs flat buffers to know sizes",
        establishes=IRLevel.STORAGE,
    ),
    PassStep(_vectorize, "needs flat buffers; C prints vector loops as they are", "VectorizeLoop"),
    PassStep(
        _unroll, "explicit unrolls are part of op bodies; C prints them as pragmas", "UnrollLoop"
    ),
    tvm_pass(_P.StmtSimplify, "offsets become short"),
    neutral(_pack, "the launcher calls packed functions"),
    tvm_pass(_P.BindTarget, "intrinsic rules depend on the target", TARGET),
    PassStep(_lower_intrin, "the code generator knows no intrinsics", "LowerIntrin"),
    PassStep(
        _expand_numerics,
        "a simplifier would undo the formulas, so none runs behind it",
        "expand_numerics",
        IRLevel.CODEGEN,
    ),
    PassStep(_scalarize, "C has no vectors; formulas are the last to make some", "scalarize"),
    neutral(
        _each("fold_constant_bits", fold_constant_bits), "formulas of constants leave such bits"
    ),
    PassStep(_define_updates, "nothing else knows what an import is", "define_updates"),
    PassStep(_lower_jumps, "last: only the LLVM code generator wants the calls", "lower_jumps"),
)


def lower_cpu(mod: IRModule, target: Target) -> IRModule:
    """Lower device functions to workers for ``target`` (kind ``llvm`` or ``c``)."""
    return run_steps(CPU_STEPS, mod, target)
