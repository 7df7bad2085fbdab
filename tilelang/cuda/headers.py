"""Where the device headers are: in the source tree, or installed with the package."""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path

from tilelang.env import env
from tilelang.errors import DeviceCompileError

__all__ = ["emulator_include_dir", "headers_stamp", "include_dir", "include_dirs"]

_PACKAGE = "tilelang"


@functools.cache
def _root() -> Path:
    """The folder that holds ``templates`` and ``emulator``."""
    # An editable install has two roots: the source tree and the folder of built files.
    roots = [Path(p) for p in sys.modules[_PACKAGE].__path__]
    candidates = [
        *(root.parent / "src" / "cuda" for root in roots),
        *(root / "include" / "cuda" for root in roots),
    ]
    for folder in candidates:
        if (folder / "templates" / "tl").is_dir():
            return folder
    searched = ", ".join(map(str, candidates))
    raise DeviceCompileError(f"the device headers are not installed (looked in {searched})")


def include_dir() -> Path:
    """The include path of device code; ``TL_TEMPLATE_PATH`` overrides it.

    Raises
    ------
    DeviceCompileError
        If the installation is incomplete.
    """
    override = env.TL_TEMPLATE_PATH.strip()
    return Path(override).expanduser() if override else _root() / "templates"


def emulator_include_dir() -> Path:
    """The folder whose headers stand in for the instructions when the host compiles device code."""
    return _root() / "emulator"


def include_dirs() -> tuple[Path, Path]:
    """The include path of the emulator: its own headers first, then the shared ones."""
    return emulator_include_dir(), include_dir()


def headers_stamp() -> str:
    """A hash of the device headers, for cache keys."""
    return _stamp(include_dir())


@functools.cache
def _stamp(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.h")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
