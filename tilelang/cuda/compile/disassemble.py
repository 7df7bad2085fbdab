"""Readable forms of compiled kernels: PTX and SASS."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tilelang.contrib.files import temporary_folder
from tilelang.cuda.compile.driver import compile_ptx, compile_source
from tilelang.env import env
from tilelang.errors import DeviceCompileError

__all__ = ["disassemble", "find_disassembler", "show_ptx", "show_sass"]

_HOW_TO_GET = (
    "no disassembler was found (looked for nvdisasm and cuobjdump on the path, below CUDA_HOME and "
    "among the installed packages); pip install nvidia-cuda-nvdisasm"
)


def show_ptx(source: str, arch: str, flags: Sequence[str] = ()) -> str:
    """PTX of CUDA source.

    Raises
    ------
    DeviceCompileError
        If the source does not compile.
    """
    return compile_ptx(source, arch, flags)


def show_sass(source: str, arch: str, flags: Sequence[str] = ()) -> str:
    """Machine code of CUDA source as text.

    Raises
    ------
    DeviceCompileError
        If the source does not compile, or no disassembler is installed.
    """
    return disassemble(compile_source(source, arch, flags).code)


def disassemble(code: bytes) -> str:
    """Machine code of a cubin as text.

    Raises
    ------
    DeviceCompileError
        If no disassembler is installed, or it rejects the binary.
    """
    tool = find_disassembler()
    if tool is None:
        raise DeviceCompileError(_HOW_TO_GET)
    options = ["-sass"] if tool.name.startswith("cuobjdump") else []
    with temporary_folder() as folder:
        path = folder / "kernel.cubin"
        path.write_bytes(code)
        done = subprocess.run(
            [str(tool), *options, str(path)], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise DeviceCompileError(f"{tool.name} failed: {done.stderr.strip()[:300]}")
    return done.stdout


def find_disassembler() -> Path | None:
    """nvdisasm, else cuobjdump: on the path, below ``CUDA_HOME``, or from a pip package."""
    home = env.CUDA_HOME.strip()
    folders = [Path(home) / "bin"] if home else []
    folders.append(Path("/usr/local/cuda/bin"))
    for entry in sys.path:
        folders += Path(entry or ".").glob("nvidia/cu*/bin")
        folders += Path(entry or ".").glob("nvidia/cuda_n*/bin")
    search = ":".join(map(str, folders))
    for name in ("nvdisasm", "cuobjdump"):
        found = shutil.which(name) or shutil.which(name, path=search)
        if found is not None:
            return Path(found)
    return None
