"""Compiling generated C with the machine's C compiler, and loading the result."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import tvm_ffi

from tilelang.contrib.files import temporary_folder
from tilelang.contrib.host_compiler import c_compiler, compiler_stamp, run_compiler
from tilelang.errors import DeviceCompileError

__all__ = [
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


def c_compiler_stamp() -> str:
    """Which C compiler this is, for cache keys; empty without one."""
    try:
        command = c_compiler()
    except DeviceCompileError:
        return ""
    return compiler_stamp(command)


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
        run_compiler([*c_compiler(), *inputs, "-o", str(library), "-lm", *_libraries()], "C")
        return library.read_bytes()


def link_library(code: bytes, path: Path) -> None:
    """Link an object file into a shared library."""
    with temporary_folder() as folder:
        source = folder / "kernel.o"
        source.write_bytes(code)
        command = [*c_compiler(), "-shared", str(source), "-o", str(path), "-lm", *_libraries()]
        run_compiler(command, "C")


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
