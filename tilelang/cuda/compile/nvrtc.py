"""NVRTC in this process, through cuda-python."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from tilelang.errors import DeviceCompileError

__all__ = ["HOW_TO_GET", "compile_nvrtc", "nvrtc_version"]

#: The first version that takes a lambda in a device function for one of the device.
_LAMBDAS = (13, 5)
#: From here on it stores results itself, where a driver is. Another program with other options was
#: served from there (seen with 13.0: fast math, and no report of registers); our cache is enough.
_OWN_CACHE = (13, 0)
HOW_TO_GET = "pip install cuda-python nvidia-cuda-nvrtc (or: pip install 'tilelang[cuda]')"


@functools.cache
def _library() -> ModuleType:
    try:
        from cuda.bindings import nvrtc  # only compiles need it, and it takes 60 ms

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:  # the package, or the library it looks for
        reason = " ".join(str(error).split())[:200]
        raise DeviceCompileError(f"NVRTC is not available ({reason}); {HOW_TO_GET}") from None
    return nvrtc


def nvrtc_version() -> tuple[int, int]:
    """Version of the library.

    Raises
    ------
    DeviceCompileError
        If there is none; says how to get it.
    """
    _, major, minor = _library().nvrtcVersion()
    return int(major), int(minor)


@functools.cache
def _architectures() -> tuple[int, ...]:
    """The compute capabilities this version compiles for."""
    status, count = _library().nvrtcGetNumSupportedArchs()
    _check(_library(), status)
    status, found = _library().nvrtcGetSupportedArchs()
    _check(_library(), status)
    return tuple(int(arch) for arch in list(found)[:count])


def _check_arch(arch: str) -> None:
    number = int("".join(digit for digit in arch if digit.isdigit()))
    if number not in _architectures():
        known = ", ".join(f"sm_{a}" for a in _architectures())
        major, minor = nvrtc_version()
        raise DeviceCompileError(
            f"NVRTC {major}.{minor} does not compile for {arch}; it has {known}. "
            "Choose one of them, or install another version"
        )


def compile_nvrtc(
    source: str, arch: str, options: list[str], name: str, *, ptx: bool = False
) -> tuple[bytes | None, str]:
    """Compile to a cubin (or PTX) for one architecture.

    Returns
    -------
    code : bytes or None
        None if the compiler rejected the source.
    log : str
    """
    library = _library()
    _check_arch(arch)
    status, program = library.nvrtcCreateProgram(source.encode(), f"{name}.cu".encode(), 0, [], [])
    _check(library, status)
    try:
        kind = f"compute_{arch.removeprefix('sm_')}" if ptx else arch
        arguments = [f"--gpu-architecture={kind}", *options]
        if nvrtc_version() >= _OWN_CACHE:
            arguments.append("--no-cache")
        if nvrtc_version() < _LAMBDAS:
            arguments.append("--device-as-default-execution-space")
        encoded = [argument.encode() for argument in arguments]
        (status,) = library.nvrtcCompileProgram(program, len(encoded), encoded)
        log = _text(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
        if status != library.nvrtcResult.NVRTC_SUCCESS:
            return None, log.decode(errors="replace").strip() or str(status.name)
        if ptx:
            code = _text(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program)
        else:
            code = _bytes(library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN, program)
        return code, log.decode(errors="replace").strip()
    finally:
        library.nvrtcDestroyProgram(program)


def _check(library: Any, status: Any) -> None:
    if status != library.nvrtcResult.NVRTC_SUCCESS:
        raise DeviceCompileError(f"NVRTC failed: {status.name}")


def _bytes(size: Any, get: Any, program: Any) -> bytes:
    _, length = size(program)
    buffer = bytearray(length)
    get(program, buffer)
    return bytes(buffer)


def _text(size: Any, get: Any, program: Any) -> bytes:
    """Text ends with a zero byte."""
    return _bytes(size, get, program).rstrip(b"\0")
