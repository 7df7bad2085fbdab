"""The compiler as functions that other parts find by name; see ``BackendModule.callbacks``."""

from __future__ import annotations

from typing import Any

from tvm.target import Target

from tilelang.cuda.compile.driver import compile_source, validate_source
from tilelang.cuda.target import target_arch, target_codes

__all__ = ["compile_code", "validate"]


def compile_code(code: str, target: Target, *_: Any) -> bytes:
    """Compile CUDA text for the architectures of ``target``.

    Raises
    ------
    DeviceCompileError
        If the compiler rejects the text.
    """
    return compile_source(str(code), target_codes(target)).code


def validate(code: str, target: Target, *_: Any) -> None:
    """Check that CUDA text compiles.

    Raises
    ------
    DeviceCompileError
        If it does not.
    """
    validate_source(str(code), target_arch(target))
