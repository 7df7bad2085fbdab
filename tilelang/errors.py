"""The catalogue of user-facing errors: one class per kind of mistake.

Every error carries the source span of the user's line when one is known, and renders it below
the message together with the line itself::

    tilelang.errors.TraceError: T.copy: extents differ: src (64, 32), dst (64, 16)
      --> my_kernel.py:12
       |         T.copy(A[0, 0], As)

``assert`` is kept for bugs of the compiler itself.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Any

import tvm_ffi

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "BackendError",
    "CacheError",
    "CodegenError",
    "DeviceCompileError",
    "EmulatorError",
    "EnvVarError",
    "KernelAssertionError",
    "LaunchError",
    "LayoutError",
    "LoweringError",
    "PassConfigError",
    "SemanticError",
    "TargetError",
    "TileLangError",
    "TraceAttributeError",
    "TraceError",
    "TraceNameError",
    "TraceTypeError",
    "UnsupportedError",
    "render_span",
]


def render_span(span: Any) -> str:
    """Format ``span`` as a ``--> file:line`` pointer followed by the source line, if readable."""
    name, line = span.source_name.name, int(span.line)
    text = linecache.getline(name, line).rstrip()
    pointer = f"  --> {name}:{line}"
    return f"{pointer}\n   | {text}" if text else pointer


class TileLangError(Exception):
    """Base of every error a user of the compiler can cause.

    Parameters
    ----------
    message : str
        What is wrong, what was expected, what to change.
    span : tvm.ir.Span, optional
        Where in the user's source.
    """

    def __init__(self, message: str, span: Any = None) -> None:
        self.message = message
        self.span = span
        super().__init__(message if span is None else f"{message}\n{render_span(span)}")

    def at(self, span: Any) -> TileLangError:
        """Return the same error located at ``span`` unless it already has a location."""
        if self.span is not None or span is None:
            return self
        return type(self)(self.message, span)


# tvm_ffi turns an exception raised inside a traversal callback into RuntimeError unless its class
# is registered; every class below may be raised from a pass.
@tvm_ffi.register_error
class TraceError(TileLangError, ValueError):
    """The language is used wrongly while a kernel is traced."""


@tvm_ffi.register_error
class TraceTypeError(TileLangError, TypeError):
    """A language function got an argument of the wrong type or dtype."""


@tvm_ffi.register_error
class TraceNameError(TileLangError, NameError):
    """A name in a traced function is not defined."""


@tvm_ffi.register_error
class TraceAttributeError(TileLangError, AttributeError):
    """A buffer or run-time expression has no such attribute or method."""


@tvm_ffi.register_error
class SemanticError(TileLangError, ValueError):
    """A traced program breaks a rule that holds on every backend."""


@tvm_ffi.register_error
class PassConfigError(TileLangError, ValueError):
    """A pass configuration has an unknown key or a value of the wrong type."""


@tvm_ffi.register_error
class EnvVarError(TileLangError, ValueError):
    """An environment variable holds text that cannot be understood."""


@tvm_ffi.register_error
class LayoutError(TileLangError, ValueError):
    """A layout is malformed, does not fit its buffer, or maps two elements to one place."""


@tvm_ffi.register_error
class TargetError(TileLangError, ValueError):
    """A target is malformed, unknown, or not usable on this machine."""


@tvm_ffi.register_error
class BackendError(TileLangError, ValueError):
    """A backend manifest, or the choice of a backend or execution backend, is invalid."""


@tvm_ffi.register_error
class LoweringError(TileLangError, RuntimeError):
    """A valid program could not be lowered for the chosen backend."""


@tvm_ffi.register_error
class CodegenError(TileLangError, RuntimeError):
    """Code generation failed."""


@tvm_ffi.register_error
class DeviceCompileError(TileLangError, RuntimeError):
    """The device or host compiler rejected generated code."""


@tvm_ffi.register_error
class LaunchError(TileLangError, ValueError):
    """A compiled kernel cannot be launched as asked."""


@tvm_ffi.register_error
class KernelAssertionError(TileLangError, AssertionError):
    """An assertion inside a kernel did not hold while it ran; its outputs are incomplete."""


@tvm_ffi.register_error
class EmulatorError(TileLangError, RuntimeError):
    """An emulated kernel hangs, breaks a rule of the device, or fails a check of the emulator."""


@tvm_ffi.register_error
class CacheError(TileLangError, RuntimeError):
    """A kernel cache entry cannot be used or written."""


@tvm_ffi.register_error
class ArgumentTypeError(TileLangError, TypeError):
    """A kernel was called with too few, too many, or wrongly typed arguments."""


@tvm_ffi.register_error
class ArgumentValueError(TileLangError, ValueError):
    """A kernel argument has the wrong rank, shape, strides or device."""


@tvm_ffi.register_error
class UnsupportedError(TileLangError, NotImplementedError):
    """A construct is not available on the chosen backend."""

    @classmethod
    def on_backend(
        cls, what: str, backend: str, available: Sequence[str] = (), span: Any = None
    ) -> UnsupportedError:
        """Build the standard message: construct, backend, and where it is available."""
        where = f"; it is available on: {', '.join(available)}" if available else ""
        return cls(f"{what} is not available on backend '{backend}'{where}", span)
