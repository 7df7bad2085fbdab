"""The kernels of CUDA text that somebody wrote: their names, and C linkage for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["kernel_names", "template_kernel", "with_c_linkage", "without_comments"]

_QUALIFIER = (
    r"(?:void|static|inline|__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)"
    r"|__cluster_dims__\s*\([^()]*\))"
)
_KERNEL = re.compile(rf"\b__global__\s+(?:{_QUALIFIER}\s+)*(\w+)\s*\(")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_C_LINKAGE = re.compile(r'extern\s*"C"\s*\Z')


def without_comments(source: str) -> str:
    """The text with blanks for comments; every other character keeps its place."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def kernel_names(source: str) -> tuple[str, ...]:
    """Names of the ``__global__`` functions in CUDA text, each once, in order."""
    return tuple(dict.fromkeys(_KERNEL.findall(without_comments(source))))


def template_kernel(source: str, name: str) -> bool:
    """Whether a declaration of the kernel ``name`` is that of a template."""
    bare = without_comments(source)
    return any(bare[:start].rstrip().endswith(">") for start in _starts(bare, name))


def with_c_linkage(source: str, name: str) -> str:
    """The text with ``extern "C"`` at the kernel ``name``, whose symbol then is its name."""
    bare = without_comments(source)
    for start in reversed(list(_starts(bare, name))):
        if not _C_LINKAGE.search(bare, 0, start):
            source = f'{source[:start]}extern "C" {source[start:]}'
    return source


def _starts(bare: str, name: str) -> Iterator[int]:
    return (match.start() for match in _KERNEL.finditer(bare) if match[1] == name)
