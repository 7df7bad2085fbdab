"""nvcc: for several architectures in one binary, and for who prefers it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tilelang.contrib.files import temporary_folder
from tilelang.env import env
from tilelang.errors import DeviceCompileError

__all__ = ["compile_nvcc", "find_nvcc"]


def find_nvcc() -> Path:
    """The compiler: below ``CUDA_HOME`` if set, else on the path, else in /usr/local/cuda.

    Raises
    ------
    DeviceCompileError
        If there is none.
    """
    home = env.CUDA_HOME.strip()
    candidates = [Path(home) / "bin" / "nvcc"] if home else []
    if (found := shutil.which("nvcc")) is not None:
        candidates.append(Path(found))
    candidates.append(Path("/usr/local/cuda/bin/nvcc"))
    for path in candidates:
        if path.is_file():
            return path
    raise DeviceCompileError(
        "nvcc was not found; install the CUDA toolkit and set CUDA_HOME, or compile with NVRTC "
        "(TILELANG_CUDA_COMPILER=nvrtc and one architecture in the target's option code)"
    )


def compile_nvcc(
    source: str, archs: Sequence[str], options: list[str], name: str
) -> tuple[bytes | None, str]:
    """Compile to a cubin (one architecture) or a fatbin (several).

    Returns
    -------
    code : bytes or None
        None if the compiler rejected the source.
    log : str
    """
    kind = "cubin" if len(archs) == 1 else "fatbin"
    limit = env.get_compile_timeout_seconds()
    with temporary_folder() as folder:
        text, output = folder / f"{name}.cu", folder / f"{name}.{kind}"
        text.write_text(source, encoding="utf-8")
        codes = [f"-gencode=arch={_virtual(arch)},code={arch}" for arch in archs]
        command = [str(find_nvcc()), f"--{kind}", *codes, *options, str(text), "-o", str(output)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=limit
            )
        except subprocess.TimeoutExpired:
            raise DeviceCompileError(
                f"nvcc ran longer than TILELANG_COMPILE_TIMEOUT_SECONDS={limit:g}"
            ) from None
        except OSError as error:
            raise DeviceCompileError(f"nvcc cannot be run: {error}") from None
        log = f"{done.stdout}{done.stderr}".replace(str(text), f"{name}.cu").strip()
        if done.returncode != 0:
            return None, log or f"status {done.returncode}: {shlex.join(command)}"
        return output.read_bytes(), log


def _virtual(arch: str) -> str:
    return f"compute_{arch.removeprefix('sm_')}"
