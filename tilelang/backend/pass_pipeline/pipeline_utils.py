"""Questions a pipeline asks the pass configuration while it decides which steps to run.

Each function takes an optional :class:`~tilelang.transform.PassContext` and uses the one in force
when it is left out.
"""

from __future__ import annotations

from tilelang.transform.pass_config import PassConfigKey, pass_flag, pass_option
from tilelang.transform.pass_context import PassContext, get_pass_context

__all__ = [
    "allow_vectorize",
    "get_layout_visual_formats",
    "should_disable_shared_memory_reuse",
    "should_enable_aggressive_merge",
    "should_enable_layout_visual",
    "should_enable_race_check",
    "should_force_let_inline",
]

_FORMATS = ("txt", "png", "pdf", "svg")


def _flag(context: PassContext | None, key: PassConfigKey) -> bool:
    return pass_flag((context or get_pass_context()).config, key)


def allow_vectorize(context: PassContext | None = None) -> bool:
    """Whether vector loops become vector code."""
    return not _flag(context, PassConfigKey.TIR_DISABLE_VECTORIZE)


def should_enable_aggressive_merge(context: PassContext | None = None) -> bool:
    """Whether shared memory is packed tighter than by whole lifetimes."""
    return _flag(context, PassConfigKey.TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE)


def should_disable_shared_memory_reuse(context: PassContext | None = None) -> bool:
    """Whether every shared buffer keeps bytes of its own."""
    return _flag(context, PassConfigKey.TL_DISABLE_SHARED_MEMORY_REUSE)


def should_force_let_inline(context: PassContext | None = None) -> bool:
    """Whether bindings are substituted before anything else."""
    return _flag(context, PassConfigKey.TL_FORCE_LET_INLINE)


def should_enable_race_check(context: PassContext | None = None) -> bool:
    """Whether parallel loops are checked for write conflicts."""
    return not _flag(context, PassConfigKey.TL_DISABLE_DATA_RACE_CHECK)


def should_enable_layout_visual(context: PassContext | None = None) -> bool:
    """Whether the inferred layouts are drawn."""
    return _flag(context, PassConfigKey.TL_LAYOUT_VISUALIZATION_ENABLE)


def get_layout_visual_formats(context: PassContext | None = None) -> tuple[str, ...]:
    """Return the formats of the drawings, ``all`` and comma-separated text spelled out."""
    config = (context or get_pass_context()).config
    value = pass_option(config, PassConfigKey.TL_LAYOUT_VISUALIZATION_FORMATS)
    names = value.split(",") if isinstance(value, str) else value
    formats = [name.strip().lower() for name in names]
    return _FORMATS if "all" in formats else tuple(formats)
