"""The kernel cache: compiled kernels on disk, keyed by content, shared by processes.

The cache lies in ``TILELANG_CACHE_DIR``, is bounded by ``TILELANG_CACHE_MAX_BYTES`` and is turned
off by ``TILELANG_DISABLE_CACHE=1`` or :func:`disable_cache`. On the command line::

    python -m tilelang cache info
    python -m tilelang cache clear
"""

from __future__ import annotations

import functools
from pathlib import Path

from tilelang.cache.key import namespace
from tilelang.cache.store import CacheInfo, DirectoryStore
from tilelang.env import disable_cache, enable_cache, env, is_cache_enabled

__all__ = [
    "CacheInfo",
    "cache_info",
    "clear_cache",
    "disable_cache",
    "enable_cache",
    "is_cache_enabled",
    "kernel_store",
]


def kernel_store() -> DirectoryStore:
    """The store at the folder and bound that the environment names now."""
    return _store(env.cache_dir(), env.cache_max_bytes())


@functools.lru_cache(maxsize=8)
def _store(root: Path, max_bytes: int) -> DirectoryStore:
    return DirectoryStore(root, namespace(), max_bytes)


def cache_info() -> CacheInfo:
    """Entries and bytes in the cache, all versions together."""
    return kernel_store().info()


def clear_cache() -> CacheInfo:
    """Remove every cached kernel of every version; returns what there was.

    Kernels already loaded stay usable.
    """
    return kernel_store().clear()
