"""From CUDA text to a binary: which compiler, which architectures, which options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.cuda.compile.binary import DeviceBinary, parse_resources
from tilelang.cuda.compile.diagnostics import rejection
from tilelang.cuda.compile.nvcc import compile_nvcc, find_nvcc
from tilelang.cuda.compile.nvrtc import compile_nvrtc, nvrtc_version
from tilelang.cuda.compile.options import compile_options
from tilelang.cuda.headers import headers_stamp
from tilelang.env import env
from tilelang.transform.pass_context import get_pass_context

__all__ = ["compile_ptx", "compile_source", "compiler_stamp", "validate_source"]

_NAME = re.compile(r"\W+")


def compile_source(
    source: str,
    arch: str | Sequence[str],
    flags: Sequence[str] = (),
    *,
    configs: Mapping[str, Any] | None = None,
    lines: Mapping[str, tuple[str, int]] | None = None,
    name: str = "kernel",
) -> DeviceBinary:
    """Compile CUDA text; no GPU is needed.

    Parameters
    ----------
    source : str
    arch : str or sequence of str
        Such as ``"sm_90a"``. Several give a fatbin, which takes nvcc.
    flags : sequence of str
        The user's compiler flags, spelled as for nvcc.
    configs : mapping, optional
        Pass configuration; by default the one in force.
    lines : mapping, optional
        Kernel name to ``(file, line)`` of the user's kernel, for error messages.
    name : str
        Of the file in the compiler's messages.

    Raises
    ------
    DeviceCompileError
        With the user's line, the compiler's first error and the path of the whole log; or if the
        compiler is not installed.
    """
    archs = [arch] if isinstance(arch, str) else list(dict.fromkeys(arch))
    settings = get_pass_context().config if configs is None else configs
    with_nvcc = len(archs) > 1 or env.cuda_compiler() == "nvcc"
    options = compile_options(flags, settings, host=with_nvcc)
    file = _NAME.sub("_", name) or "kernel"
    if with_nvcc:
        code, log = compile_nvcc(source, archs, options, file)
    else:
        code, log = compile_nvrtc(source, archs[0], options, file)
    if code is None:
        raise rejection("nvcc" if with_nvcc else "NVRTC", source, log, lines)
    kind = "cubin" if len(archs) == 1 else "fatbin"
    return DeviceBinary(code, kind, log, parse_resources(log))


def compile_ptx(
    source: str,
    arch: str,
    flags: Sequence[str] = (),
    *,
    configs: Mapping[str, Any] | None = None,
    lines: Mapping[str, tuple[str, int]] | None = None,
) -> str:
    """PTX text of CUDA source, by NVRTC.

    Raises
    ------
    DeviceCompileError
        As :func:`compile_source`.
    """
    settings = get_pass_context().config if configs is None else configs
    options = compile_options(flags, settings, host=False)
    code, log = compile_nvrtc(source, arch, options, "kernel", ptx=True)
    if code is None:
        raise rejection("NVRTC", source, log, lines)
    return code.decode()


def compiler_stamp() -> str:
    """Which compiler and device headers are in use, for cache keys.

    Raises
    ------
    DeviceCompileError
        If the compiler is not installed.
    """
    if env.cuda_compiler() == "nvcc":
        path = find_nvcc().resolve()
        stat = path.stat()
        compiler = f"nvcc {path} {stat.st_size} {stat.st_mtime_ns}"
    else:
        compiler = "nvrtc {}.{}".format(*nvrtc_version())
    return f"{compiler} headers {headers_stamp()}"


def validate_source(source: str, arch: str) -> None:
    """Compile and drop the result.

    Raises
    ------
    DeviceCompileError
        If the compiler rejects the text.
    """
    compile_source(source, arch)
