"""What each dialect exports: the one list behind every ``__all__``, stub and snapshot.

A dialect is the neutral surface plus the extensions of its backend. The modules below say what they
export in their ``__all__``; where a module also has internal names, the public ones are listed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from tilelang.language.not_yet import NOT_YET, NotYet

__all__ = ["EXTENSIONS", "NEUTRAL", "exported", "install", "missing_name", "modules_of"]

#: Module and its public names; None means all of its ``__all__``.
Exports = tuple[tuple[str, tuple[str, ...] | None], ...]

NEUTRAL: Exports = (
    ("tilelang.language.dtypes", None),
    ("tilelang.language.tir", None),
    ("tilelang.language.math", None),
    ("tilelang.language.integer", None),
    ("tilelang.language.bitops", None),
    ("tilelang.language.casting", None),
    ("tilelang.language.fast_math", None),
    ("tilelang.language.extern", None),
    ("tilelang.language.warp", None),
    ("tilelang.language.sync", None),
    ("tilelang.language.debug", None),
    ("tilelang.language.aliases", None),
    ("tilelang.language.annotate", None),
    ("tilelang.language.schedule", None),
    ("tilelang.language.scheduler", None),
    ("tilelang.language.ptx_names", None),
    (
        "tilelang.language.eager",
        ("JITFunc", "PrimFunc", "Ref", "const", "inline", "macro", "meta_class", "prim_func"),
    ),
    ("tilelang.language.kernel", None),
    ("tilelang.language.allocate", None),
    (
        "tilelang.language.loop",
        (
            "Parallel",
            "Persistent",
            "Pipelined",
            "Serial",
            "Unroll",
            "Vectorized",
            "grid",
            "loop_break",
            "parallel",
            "serial",
            "thread_binding",
            "unroll",
            "vectorized",
        ),
    ),
    (
        "tilelang.language.tensor",
        (
            "Buffer",
            "FragmentBuffer",
            "LocalBuffer",
            "SharedBuffer",
            "StridedTensor",
            "Tensor",
            "dynamic",
            "handle",
            "make_tensor",
            "make_tensor_from_addr",
            "match_buffer",
            "ptr",
            "symbolic",
        ),
    ),
    (
        "tilelang.ir.op.atomic",
        (
            "atomic_add",
            "atomic_addx2",
            "atomic_addx4",
            "atomic_load",
            "atomic_max",
            "atomic_min",
            "atomic_or",
            "atomic_store",
        ),
    ),
    ("tilelang.ir.op.copy", ("async_copy", "copy")),
    ("tilelang.ir.op.fill", ("clear", "fill")),
    ("tilelang.ir.op.gemm", ("GemmWarpPolicy", "gemm")),
    ("tilelang.ir.op.gemm_sp", ("gemm_sp",)),
    ("tilelang.ir.op.im2col", ("im2col",)),
    ("tilelang.ir.op.logical", ("all_of", "any_of")),
    (
        "tilelang.ir.op.reduce",
        (
            "reduce",
            "reduce_absmax",
            "reduce_abssum",
            "reduce_bitand",
            "reduce_bitor",
            "reduce_bitxor",
            "reduce_max",
            "reduce_min",
            "reduce_sum",
        ),
    ),
    (
        "tilelang.ir.op.reducer",
        ("alloc_reducer", "finalize_reducer", "reducer_init", "reducer_update"),
    ),
    ("tilelang.ir.op.scan", ("cummax", "cumsum")),
    ("tilelang.ir.op.transpose", ("transpose",)),
    ("tilelang.ir.op.view", None),
    ("tilelang.layout", ("Fragment", "Layout")),
)

EXTENSIONS: dict[str, Exports] = {
    "cpu": (),
    "cuda": (
        ("tilelang.cuda.intrinsics.mma_emitter", None),
        ("tilelang.cuda.intrinsics.mma_layout", None),
        ("tilelang.cuda.language.allocate", None),
        ("tilelang.cuda.language.cluster", None),
        ("tilelang.cuda.language.copies", None),
        ("tilelang.cuda.language.kernels", None),
        ("tilelang.cuda.language.launch", None),
        ("tilelang.cuda.language.matrix", None),
        ("tilelang.cuda.language.memory", None),
    ),
    "metal": (("tilelang.metal.language.matrix", None),),
    "rocm": (("tilelang.rocm.language.matrix", None),),
    "webgpu": (),
}


def modules_of(dialect: str | None = None) -> Exports:
    """The modules of a dialect, or of the neutral surface."""
    return NEUTRAL if dialect is None else NEUTRAL + EXTENSIONS[dialect]


def exported(exports: Exports) -> Iterator[tuple[str, str, Any]]:
    """Module, name and object of everything in ``exports``, in order."""
    for module_name, names in exports:
        module: ModuleType = import_module(module_name)
        for name in module.__all__ if names is None else names:
            yield module_name, name, getattr(module, name)


def install(namespace: dict[str, Any], exports: Exports) -> list[str]:
    """Put everything in ``exports`` into a module's namespace; returns its ``__all__``."""
    found: dict[str, Any] = {}
    for module, name, value in exported(exports):
        assert found.setdefault(name, value) is value, f"{module}.{name} hides another T.{name}"
    namespace.update(found)
    return sorted(found)


def missing_name(dialect: str, module: str, name: str) -> Any:
    """What ``__getattr__`` of a dialect gives for a name it does not have.

    Raises
    ------
    AttributeError
        If the public interface does not have it either.
    """
    for group in ("common", dialect):
        reason = NOT_YET.get(group, {}).get(name)
        if reason is not None:
            return NotYet(name, reason)
    text = f"module '{module}' has no attribute '{name}'"
    if not name.startswith("_"):
        near = difflib.get_close_matches(name, import_module(module).__dir__(), 3)
        text += f"; did you mean {' or '.join(near)}?" if near else ""
    raise AttributeError(text)
