"""The CUDA compilers and what the architectures have, by the names of ``tilelang.contrib.nvcc``."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from tvm.target import Target

from tilelang.backend.target import TargetLike, determine_target
from tilelang.cuda.compile.disassemble import show_sass
from tilelang.cuda.compile.driver import compile_ptx, compile_source
from tilelang.cuda.compile.nvcc import find_nvcc
from tilelang.cuda.compile.nvrtc import nvrtc_version
from tilelang.cuda.target import local_arch, target_arch, target_codes
from tilelang.env import env
from tilelang.errors import DeviceCompileError, TargetError

__all__ = [
    "compile_cuda",
    "find_cuda_path",
    "get_cuda_version",
    "get_ptx_from_source",
    "get_sass_from_source",
    "get_target_arch_and_code",
    "get_target_compute_version",
    "have_bf16",
    "have_cudagraph",
    "have_fp8",
    "have_fp16",
    "have_int8",
    "have_mbarrier",
    "have_pdl",
    "have_tensorcore",
    "have_tma",
    "is_hopper",
    "parse_compute_version",
]


def find_cuda_path() -> str:
    """The folder of the CUDA toolkit.

    Raises
    ------
    DeviceCompileError
        If there is none. Compiling with NVRTC needs none.
    """
    return str(find_nvcc().resolve().parent.parent)


def get_cuda_version(cuda_path: str | None = None) -> tuple[int, int]:
    """Version ``(major, minor)`` of the compiler of CUDA source, or of the toolkit at a path.

    Raises
    ------
    DeviceCompileError
        If the compiler is not installed.
    """
    if cuda_path is None and env.cuda_compiler() == "nvrtc":
        return nvrtc_version()
    nvcc = find_nvcc() if cuda_path is None else Path(cuda_path) / "bin" / "nvcc"
    try:
        done = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise DeviceCompileError(f"{nvcc} cannot be run: {error.strerror}") from None
    found = re.search(r"release (\d+)\.(\d+)", done.stdout)
    if found is None:
        raise DeviceCompileError(f"{nvcc} --version names no release: {done.stdout[-200:]!r}")
    return int(found[1]), int(found[2])


def compile_cuda(
    code: str,
    target_format: str = "cubin",
    arch: str | None = None,
    options: str | list[str] | None = None,
) -> bytearray:
    """Compile CUDA source to ``"ptx"`` or ``"cubin"``, for the local device if ``arch`` is None.

    Raises
    ------
    DeviceCompileError
        If the source does not compile, or the compiler is not installed.
    ValueError
        If the format is another.
    """
    arch, flags = arch or local_arch(), _flags(options)
    if target_format == "ptx":
        return bytearray(compile_ptx(code, arch, flags).encode())
    if target_format == "cubin":
        return bytearray(compile_source(code, arch, flags).code)
    raise ValueError(f"target_format must be 'ptx' or 'cubin', found {target_format!r}")


def get_ptx_from_source(source: str, compile_flags: str | list[str] | None = None) -> str:
    """PTX of CUDA source for the local device.

    Raises
    ------
    DeviceCompileError
        If the source does not compile, or the compiler is not installed.
    """
    return compile_ptx(source, local_arch(), _flags(compile_flags))


def get_sass_from_source(source: str, compile_flags: str | list[str] | None = None) -> str:
    """Machine code of CUDA source for the local device, as text.

    Raises
    ------
    DeviceCompileError
        If the source does not compile, or the compiler or the disassembler is not installed.
    """
    return show_sass(source, local_arch(), _flags(compile_flags))


def _flags(options: str | list[str] | None) -> list[str]:
    return [options] if isinstance(options, str) else list(options or [])


def get_target_compute_version(target: TargetLike | None = None) -> str:
    """Compute capability such as ``"9.0"`` of a CUDA target; ``None`` is the local device's.

    Raises
    ------
    TargetError
        If the target is none of CUDA.
    """
    digits = re.sub(r"\D", "", get_target_arch_and_code(target)[0])
    return f"{digits[:-1]}.{digits[-1]}"


def get_target_arch_and_code(target: TargetLike | None = None) -> tuple[str, list[str]]:
    """Architecture of a CUDA target, and the real architectures to generate code for.

    Raises
    ------
    TargetError
        If the target is none of CUDA.
    """
    resolved = determine_target("cuda" if target is None else target, return_object=True)
    if str(resolved.kind.name) != "cuda":
        raise TargetError(f"{resolved.kind.name} is no CUDA target")
    return target_arch(resolved), list(target_codes(resolved))


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """``(9, 0)`` of ``"9.0"``.

    Raises
    ------
    ValueError
        If the text is of another form.
    """
    found = re.fullmatch(r"(\d+)\.(\d+)", compute_version)
    if found is None:
        raise ValueError(f"a compute version is written like '9.0', found {compute_version!r}")
    return int(found[1]), int(found[2])


def _capability(of: TargetLike | None) -> tuple[int, int]:
    """Of a compute version, a target, or the local device."""
    text = of if isinstance(of, str) and re.fullmatch(r"[\d.]+", of) else None
    return parse_compute_version(text or get_target_compute_version(of))


def _have(least: tuple[int, int], what: str) -> Callable[[TargetLike | None], bool]:
    def have(compute_version: TargetLike | None = None) -> bool:
        return _capability(compute_version) >= least

    have.__doc__ = (
        f'Whether a compute version such as ``"9.0"``, a target, or the local device has {what}.'
    )
    return have


have_fp16 = _have((5, 3), "arithmetic of float16")
have_int8 = _have((6, 1), "products of four int8 at once")
have_tensorcore = _have((7, 0), "tensor cores")
have_bf16 = _have((8, 0), "arithmetic of bfloat16")
have_mbarrier = _have((8, 0), "barriers in shared memory")
have_fp8 = _have((8, 9), "tensor cores for 8-bit floats")
have_tma = _have((9, 0), "bulk copies of tensors")
have_pdl = _have((9, 0), "programmatic dependent launches")


def have_cudagraph() -> bool:
    """Whether launches can be captured into graphs: every supported CUDA version can."""
    return True


def is_hopper(target: Target) -> bool:
    """Whether the target's architecture is Hopper's, ``sm_90``."""
    return _capability(target) == (9, 0)
