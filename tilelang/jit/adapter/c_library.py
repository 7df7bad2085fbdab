"""Compiling generated C with the machine's C compiler, and loading the result."""

from __future__ import annotations

import functools
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import tvm_ffi

from tilelang.contrib.files import temporary_folder
from tilelang.env import env
from tilelang.errors import DeviceCompileError

__all__ = [
    "c_compiler",
    "c_compiler_stamp",
    "compile_c",
    "link_library",
    "load_library",
]

# Generated code reinterprets memory freely and relies on two's complement everywhere.
_FLAGS = (
    "-std=gnu11",
    "-O3",
    "-march=native",
    "-fPIC",
    "-shared",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-w",
)
_MAX_ERROR_LINES = 12


def c_compiler() -> tuple[str, ...]:
    """The command of the C compiler: ``CC`` if set, else ``cc``, ``gcc`` or ``clang``.

    Raises
    ------
    DeviceCompileError
        If there is none.
    """
    return tuple(shlex.split(env.CC)) or _installed_compiler()


@functools.cache
def _installed_compiler() -> tuple[str, ...]:
    for name in ("cc", "gcc", "clang"):
        if (path := shutil.which(name)) is not None:
            return (path,)
    raise DeviceCompileError(
        "no C compiler found (looked for cc, gcc, clang); install one or set CC, or compile for "
        "target 'llvm', which needs none"
    )


def c_compiler_stamp() -> str:
    """Which C compiler this is, for cache keys; empty without one.

    Its file, not ``--version``: running a compiler costs more than a cache hit.
    """
    try:
        command = c_compiler()
    except DeviceCompileError:
        return ""
    return f"{shlex.join(command)} {_file_stamp(command[0])}"


@functools.cache
def _file_stamp(program: str) -> str:
    try:
        path = Path(shutil.which(program) or program).resolve(strict=True)
        stat = path.stat()
    except OSError:
        return ""
    return f"{path} {stat.st_size} {stat.st_mtime_ns}"


def compile_c(source: str, flags: Sequence[str] = ()) -> bytes:
    """Compile C text to a shared library and return its contents.

    Parameters
    ----------
    source : str
    flags : sequence of str
        Added after our own, so they win.

    Raises
    ------
    DeviceCompileError
        With the compiler's first messages.
    """
    with temporary_folder() as folder:
        text, library = folder / "kernel.c", folder / "kernel.so"
        text.write_text(source, encoding="utf-8")
        # Libraries come last: a linker drops those that nothing before them needs.
        inputs = [*_FLAGS, *_includes(), *flags, str(text)]
        _run([*c_compiler(), *inputs, "-o", str(library), "-lm", *_libraries()])
        return library.read_bytes()


def link_library(code: bytes, path: Path) -> None:
    """Link an object file into a shared library."""
    with temporary_folder() as folder:
        source = folder / "kernel.o"
        source.write_bytes(code)
        _run([*c_compiler(), "-shared", str(source), "-o", str(path), "-lm", *_libraries()])


def _run(command: list[str]) -> None:
    limit = env.get_compile_timeout_seconds()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        raise DeviceCompileError(
            f"the C compiler ran longer than TILELANG_COMPILE_TIMEOUT_SECONDS={limit:g}"
        ) from None
    except OSError as error:
        raise DeviceCompileError(f"the C compiler cannot be run: {error}") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()[:_MAX_ERROR_LINES]
        raise DeviceCompileError(
            f"the C compiler rejected the generated code (status {done.returncode}):\n"
            + "\n".join(lines)
            + f"\ncommand: {shlex.join(command)}"
        )


@functools.cache
def _includes() -> tuple[str, ...]:
    """Headers of tvm-ffi, whose C interface the entry points have."""
    folders = (tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path())
    return tuple(f"-I{folder}" for folder in folders)


@functools.cache
def _libraries() -> tuple[str, ...]:
    library = Path(tvm_ffi.libinfo.find_libtvm_ffi())
    return f"-L{library.parent}", f"-l:{library.name}", f"-Wl,-rpath,{library.parent}"


def load_library(contents: bytes, directory: Path | None, name: str) -> tvm_ffi.Module:
    """Load a shared library from its folder, or from a temporary file if it has none.

    A mapped library outlives its file, so the temporary file is gone when this returns.
    """
    if directory is not None:
        return tvm_ffi.load_module(directory / name)
    with temporary_folder() as folder:
        path = folder / name
        path.write_bytes(contents)
        return tvm_ffi.load_module(path)
