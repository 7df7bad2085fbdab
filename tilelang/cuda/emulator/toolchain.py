"""Compiling emulated kernels: precompiled headers, the runtime's object file, and the link.

Headers and runtime are compiled once per compiler and kept in the cache folder, so that a kernel
costs one run of the compiler over a few hundred lines and one of the linker.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tilelang.contrib.files import temporary_folder
from tilelang.contrib.host_compiler import compiler_stamp, cxx_compiler, run_compiler
from tilelang.cuda.emulator.source import prepare_source
from tilelang.cuda.headers import emulator_include_dir, include_dir, include_dirs
from tilelang.env import env

__all__ = ["build_library", "support_digest"]

_LANGUAGE = "C++"
_COMMON_FLAGS = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-w")
# Integers wrap, memory is reinterpreted freely, `char` is signed, nothing is contracted, and code
# may change the rounding mode.
_KERNEL_FLAGS = (
    *_COMMON_FLAGS,
    "-O1",
    "-g1",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-frounding-math",
    "-fsigned-char",
    "-fstack-clash-protection",  # a frame that is too large meets the page below the stack
)
_INSTRUMENTED = ("-fsanitize=thread",)
_HEADER = "emulator.h"
_RUNTIME_OBJECT = "runtime.o"


def support_digest() -> str:
    """Digest of all headers and of the runtime, for cache keys."""
    files = [path for root in include_dirs() for path in sorted(root.rglob("*")) if path.is_file()]
    return _digest(tuple((str(path), path.stat().st_mtime_ns) for path in files))


@functools.cache
def _digest(files: tuple[tuple[str, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, _ in files:
        path = Path(name)
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def build_library(source: str, *, instrument: bool = False, flags: Sequence[str] = ()) -> bytes:
    """Compile CUDA source to a shared library with an entry ``tl_emulate_<kernel>`` a kernel.

    Parameters
    ----------
    source : str
    instrument : bool
        Report every memory access, for the checks.
    flags : sequence of str
        Added after our own, so they win.

    Raises
    ------
    DeviceCompileError
        Without a C++ compiler, or with its first messages.
    """
    prepared = prepare_source(source)
    support = _support_folder(instrument)
    command = [*cxx_compiler(), *_kernel_flags(instrument)]
    aliases = [f"-Wl,--defsym={name}=tl_emu_arena" for name in prepared.shared_names]
    with temporary_folder() as folder:
        text, code, library = folder / "kernel.cu", folder / "kernel.o", folder / "kernel.so"
        text.write_text(prepared.text, encoding="utf-8")
        # Debug information names the source, which is gone later, without its folder.
        paths = [f"-fdebug-prefix-map={folder}/=", "-include", str(support / _HEADER)]
        run_compiler(
            [*command, *paths, *flags, "-x", "c++", "-c", str(text), "-o", str(code)], _LANGUAGE
        )
        inputs = [str(code), str(support / _RUNTIME_OBJECT), *aliases]
        link = ["-shared", "-pthread", "-Wl,-Bsymbolic", "-Wl,-z,defs", "-o", str(library), "-lm"]
        run_compiler([*cxx_compiler(), *inputs, *link], _LANGUAGE)
        return library.read_bytes()


def _kernel_flags(instrument: bool) -> list[str]:
    includes = [f"-I{folder}" for folder in include_dirs()]
    return [*_KERNEL_FLAGS, *(_INSTRUMENTED if instrument else ()), *includes]


def _support_folder(instrument: bool) -> Path:
    """The folder with the precompiled header and the runtime, made if it is not there yet."""
    key = [compiler_stamp(cxx_compiler()), support_digest(), *_kernel_flags(instrument)]
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:32]
    folder = _cache_root() / digest
    if not folder.is_dir():
        _make_support(folder, instrument)
    return folder


def _cache_root() -> Path:
    root = env.cache_dir() / "emulator"
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _process_root()
    return root if os.access(root, os.W_OK) else _process_root()


@functools.cache
def _process_root() -> Path:
    return Path(tempfile.mkdtemp(prefix="tilelang-emulator-"))


def _make_support(folder: Path, instrument: bool) -> None:
    """Fill a folder beside the final one and rename it, so that no half-made one is ever used."""
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix="part-"))
    try:
        header = part / _HEADER
        header.write_text(_all_headers(), encoding="utf-8")
        compiled = part / f"{_HEADER}.gch"
        flags = _kernel_flags(instrument)
        run_compiler(
            [*cxx_compiler(), *flags, "-x", "c++-header", str(header), "-o", str(compiled)],
            _LANGUAGE,
        )
        _compile_runtime(part)
        os.rename(part, folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _all_headers() -> str:
    """Whatever a kernel may include; its own lines then find everything read already."""
    names = sorted(path.name for path in (include_dir() / "tl").glob("*.h"))
    return "".join(f"#include <tl/{name}>\n" for name in ("emulator.h", *names))


def _compile_runtime(folder: Path) -> None:
    runtime = emulator_include_dir() / "runtime"
    unity = folder / "runtime.cc"
    names = sorted(path.name for path in runtime.glob("*.cc"))
    unity.write_text("".join(f'#include "{name}"\n' for name in names), encoding="utf-8")
    command = [*cxx_compiler(), *_COMMON_FLAGS, "-O2", f"-I{runtime}"]
    run_compiler([*command, "-c", str(unity), "-o", str(folder / _RUNTIME_OBJECT)], _LANGUAGE)
