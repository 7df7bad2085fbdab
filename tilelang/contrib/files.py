"""Folders for files that other programs read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tilelang.env import env

__all__ = ["temporary_folder"]


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder below ``TILELANG_TMP_DIR``, or the system's if that cannot be written.

    It is deleted afterwards unless ``TILELANG_CLEANUP_TEMP_FILES=0``.
    """
    try:
        root = env.tmp_dir()
        root.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=root, prefix="tl-"))
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="tilelang-"))
    try:
        yield folder
    finally:
        if env.should_cleanup_temp_files():
            shutil.rmtree(folder, ignore_errors=True)
