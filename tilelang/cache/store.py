"""A directory of immutable entries, shared by any number of processes.

An entry is a folder named by its key. It is written in a staging folder beside the entries and
moved into place with one rename, so a reader sees a whole entry or none, and of several writers
the first wins. The manifest, written last, holds size and SHA-256 of every file: what a crash, a
full disk or a foreign hand damaged is found on reading and removed. The last use of an entry is
the modification time of its manifest.

    <root>/<version>/<platform>/kernels/<key>/{manifest.json, ...}
    <root>/<version>/<platform>/.staging/          entries being written or deleted
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CacheEntry", "CacheInfo", "DirectoryStore"]

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
FORMAT = 1
STALE_STAGING_SECONDS = 3600.0
# Evicting down to a share of the bound keeps the next writes from scanning the folder again.
TRIM_TARGET = 0.8
# Other processes write too, so the running total is only trusted for this many writes.
RESCAN_EVERY = 64

_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class CacheEntry:
    """The verified contents of one entry.

    ``files`` maps file names to contents; ``directory`` is where they lie, for loaders that need
    a path. An entry may be evicted at any time, so a path can vanish after it was handed out.
    """

    key: str
    directory: Path
    files: Mapping[str, bytes]
    info: Mapping[str, Any]


@dataclass(frozen=True)
class CacheInfo:
    """What is stored: number of entries, bytes, and the bound in bytes (0 = none)."""

    root: Path
    entries: int
    size_bytes: int
    max_bytes: int


@dataclass(frozen=True)
class _Stored:
    path: Path
    size: int
    last_use: float


class DirectoryStore:
    """Entries of one version and platform, with a size bound over the whole root.

    Parameters
    ----------
    root : Path
        The cache root. Nothing is created before the first write.
    namespace : str
        ``"<version>/<platform>"``: where this process reads and writes.
    max_bytes : int
        Bound on the sum of all entries below ``root`` (all versions); 0 means none.
    """

    def __init__(self, root: Path, namespace: str, max_bytes: int = 0) -> None:
        self.root = root
        self.max_bytes = max_bytes
        self._entries = root / namespace / "kernels"
        self._staging = root / namespace / ".staging"
        self._total: int | None = None
        self._writes = 0
        self._warned = False

    def path(self, key: str) -> Path:
        """Where the entry of ``key`` lies or would lie."""
        return self._entries / key

    def get(self, key: str) -> CacheEntry | None:
        """Read and verify an entry; None if there is none. A damaged one is removed."""
        directory = self._entries / key
        try:
            text = (directory / MANIFEST).read_bytes()
        except FileNotFoundError:
            if directory.is_dir():
                self._discard(directory, "it has no manifest")
            return None
        except OSError as error:
            logger.debug("cache entry %s cannot be read: %s", directory, error)
            return None
        try:
            entry = _verified(key, directory, text)
        except (OSError, ValueError, KeyError, TypeError) as error:
            if directory.exists():  # else another process evicted it while it was read
                self._discard(directory, str(error))
            return None
        with contextlib.suppress(OSError):  # a read-only cache still serves hits
            os.utime(directory / MANIFEST)
        return entry

    def put(
        self, key: str, files: Mapping[str, bytes], info: Mapping[str, Any] | None = None
    ) -> bool:
        """Store ``files`` under ``key``; False if another writer was first or nothing was stored.

        A folder that cannot be written (read-only, full) is reported in the log and changes
        nothing else: the cache is never needed to run a kernel.
        """
        size = sum(map(len, files.values()))
        if self.max_bytes and size > self.max_bytes:
            logger.debug("kernel of %d bytes exceeds the cache bound, not stored", size)
            return False
        staging = None
        try:
            self._entries.mkdir(parents=True, exist_ok=True)
            self._staging.mkdir(exist_ok=True)
            self._remove_stale_staging()
            staging = Path(tempfile.mkdtemp(dir=self._staging))
            _write_entry(staging, key, files, info or {})
            os.rename(staging, self._entries / key)
        except OSError as error:
            if staging is not None:
                shutil.rmtree(staging, ignore_errors=True)
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                level = logging.DEBUG if self._warned else logging.WARNING
                logger.log(level, "kernel not cached in %s: %s", self._entries, error)
                self._warned = True
            return False
        except BaseException:  # Ctrl-C while writing: leave no half-written folder behind
            if staging is not None:
                shutil.rmtree(staging, ignore_errors=True)
            raise
        self._trim(size, keep=self._entries / key)
        return True

    def remove(self, key: str) -> None:
        """Remove one entry if it is there."""
        self._discard(self._entries / key, None)

    def clear(self) -> CacheInfo:
        """Remove every entry and leftover of all versions; returns what there was."""
        before = self.info()
        for stored in self._scan():
            self._discard(stored.path, None)
        for kernels in list(self.root.glob("*/*/kernels")):
            shutil.rmtree(kernels.parent / ".staging", ignore_errors=True)
            # Only what this class made and left empty: the root may be a folder of the user's.
            for folder in (kernels, kernels.parent, kernels.parent.parent):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        self._total = None
        return before

    def info(self) -> CacheInfo:
        """Count entries and bytes of all versions below the root."""
        stored = list(self._scan())
        return CacheInfo(self.root, len(stored), sum(s.size for s in stored), self.max_bytes)

    # -- removal ------------------------------------------------------------------------------
    def _discard(self, directory: Path, reason: str | None) -> None:
        """Move an entry out of sight in one step, then delete it."""
        if reason is not None:
            logger.warning("kernel cache entry %s is damaged (%s), rebuilding", directory, reason)
        try:
            self._staging.mkdir(parents=True, exist_ok=True)
            trash = Path(tempfile.mkdtemp(dir=self._staging))
            os.rename(directory, trash / "entry")
        except OSError as error:
            logger.debug("cache entry %s cannot be removed: %s", directory, error)
            return
        shutil.rmtree(trash, ignore_errors=True)

    def _remove_stale_staging(self) -> None:
        """Delete what killed writers left; once a process is enough."""
        if self._writes:
            return
        oldest = time.time() - STALE_STAGING_SECONDS
        for folder in self._staging.iterdir():
            with contextlib.suppress(OSError):
                if folder.stat().st_mtime < oldest:
                    shutil.rmtree(folder, ignore_errors=True)

    def _trim(self, added: int, keep: Path) -> None:
        """Evict least recently used entries while the root exceeds the bound."""
        self._writes += 1
        if not self.max_bytes:
            return
        if self._total is not None and self._writes % RESCAN_EVERY:
            self._total += added
            if self._total <= self.max_bytes:
                return
        stored = sorted(self._scan(), key=lambda s: s.last_use)
        self._total = sum(s.size for s in stored)
        if self._total <= self.max_bytes:
            return
        for entry in stored:
            if self._total <= self.max_bytes * TRIM_TARGET:
                break
            if entry.path != keep:
                self._discard(entry.path, None)
                self._total -= entry.size

    def _scan(self) -> Iterator[_Stored]:
        for kernels in self.root.glob("*/*/kernels"):
            with contextlib.suppress(OSError), os.scandir(kernels) as folders:
                for folder in folders:
                    if _KEY.fullmatch(folder.name) and folder.is_dir():
                        yield _measure(Path(folder.path))


def _write_entry(
    staging: Path, key: str, files: Mapping[str, bytes], info: Mapping[str, Any]
) -> None:
    table = {}
    for name, data in files.items():
        if name == MANIFEST or os.path.basename(name) != name:
            raise ValueError(f"{name!r} is not a plain file name of a cache entry")
        (staging / name).write_bytes(data)
        table[name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest = {"format": FORMAT, "key": key, "files": table, "info": dict(info)}
    (staging / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _verified(key: str, directory: Path, manifest_text: bytes) -> CacheEntry:
    manifest = json.loads(manifest_text)
    if manifest["format"] != FORMAT or manifest["key"] != key:
        raise ValueError("its manifest belongs to another entry or format")
    files = {}
    for name, expected in manifest["files"].items():
        data = (directory / name).read_bytes()
        if len(data) != expected["size"]:
            raise ValueError(f"{name} has {len(data)} bytes instead of {expected['size']}")
        if hashlib.sha256(data).hexdigest() != expected["sha256"]:
            raise ValueError(f"{name} has changed")
        files[name] = data
    return CacheEntry(key, directory, files, manifest["info"])


def _measure(directory: Path) -> _Stored:
    size, last_use = 0, 0.0
    with contextlib.suppress(OSError), os.scandir(directory) as files:
        for file in files:
            stat = file.stat()
            size += stat.st_size
            last_use = max(last_use, stat.st_mtime)
    return _Stored(directory, size, last_use)
