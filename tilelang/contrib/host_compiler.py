"""The C and C++ compilers of this machine: finding one, naming it in cache keys, running it."""

from __future__ import annotations

import functools
import shlex
import shutil
import subprocess
from pathlib import Path

from tilelang.env import env
from tilelang.errors import DeviceCompileError

__all__ = [
    "c_compiler",
    "compiler_stamp",
    "cxx_compiler",
    "has_cxx_compiler",
    "run_compiler",
]

_MAX_ERROR_LINES = 12


def c_compiler() -> tuple[str, ...]:
    """The command of the C compiler: ``CC`` if set, else ``cc``, ``gcc`` or ``clang``.

    Raises
    ------
    DeviceCompileError
        If there is none.
    """
    return tuple(shlex.split(env.CC)) or _installed_compiler(
        "C", ("cc", "gcc", "clang"), "set CC, or compile for target 'llvm', which needs none"
    )


def cxx_compiler() -> tuple[str, ...]:
    """The command of the C++ compiler: ``CXX`` if set, else ``g++``, ``c++`` or ``clang++``.

    Raises
    ------
    DeviceCompileError
        If there is none.
    """
    return tuple(shlex.split(env.CXX)) or _installed_compiler(
        "C++", ("g++", "c++", "clang++"), "set CXX"
    )


def has_cxx_compiler() -> bool:
    """Whether :func:`cxx_compiler` finds one."""
    try:
        return bool(cxx_compiler())
    except DeviceCompileError:
        return False


@functools.cache
def _installed_compiler(language: str, names: tuple[str, ...], remedy: str) -> tuple[str, ...]:
    for name in names:
        if (path := shutil.which(name)) is not None:
            return (path,)
    raise DeviceCompileError(
        f"no {language} compiler found (looked for {', '.join(names)}); install one or {remedy}"
    )


def compiler_stamp(command: tuple[str, ...]) -> str:
    """Which compiler ``command`` is, for cache keys.

    Its file, not ``--version``: running a compiler costs more than a cache hit.
    """
    return f"{shlex.join(command)} {_file_stamp(command[0])}"


@functools.cache
def _file_stamp(program: str) -> str:
    try:
        path = Path(shutil.which(program) or program).resolve(strict=True)
        stat = path.stat()
    except OSError:
        return ""
    return f"{path} {stat.st_size} {stat.st_mtime_ns}"


def run_compiler(command: list[str], language: str) -> None:
    """Run a compiler; what it complains about becomes the error.

    Raises
    ------
    DeviceCompileError
        With the first lines of its output.
    """
    limit = env.get_compile_timeout_seconds()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        raise DeviceCompileError(
            f"the {language} compiler ran longer than TILELANG_COMPILE_TIMEOUT_SECONDS={limit:g}"
        ) from None
    except OSError as error:
        raise DeviceCompileError(f"the {language} compiler cannot be run: {error}") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()[:_MAX_ERROR_LINES]
        raise DeviceCompileError(
            f"the {language} compiler rejected the generated code (status {done.returncode}):\n"
            + "\n".join(lines)
            + f"\ncommand: {shlex.join(command)}"
        )
