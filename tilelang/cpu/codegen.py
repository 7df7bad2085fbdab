"""Code generation of the CPU backend: LLVM in process, or C source."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import tvm
from tvm.target import Target

from tilelang.cpu.codegen_c import build_c

__all__ = ["LLVMModule", "build_c", "build_llvm"]


class LLVMModule:
    """Compiled code of one module.

    Parameters
    ----------
    module : tvm runtime module
        With one packed function a kernel.
    """

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getitem__(self, name: str) -> Any:
        """The packed function ``name``."""
        return self.module[name]

    def inspect_source(self, fmt: str = "ll") -> str:
        """LLVM IR (``"ll"``) or assembly (``"asm"``)."""
        return str(self.module.inspect_source(fmt))

    def emit_object(self) -> bytes:
        """Relocatable object code."""
        with tempfile.TemporaryDirectory(prefix="tilelang-") as folder:
            path = Path(folder) / "kernel.o"
            self.module.write_to_file(str(path), "o")
            return path.read_bytes()


def build_llvm(mod: tvm.IRModule, target: Target) -> LLVMModule:
    """Compile lowered workers with LLVM."""
    build = tvm.get_global_func("target.build.llvm")
    return LLVMModule(build(mod, target))
