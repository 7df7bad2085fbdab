"""Just-in-time compilation: ``jit``, ``compile`` and the kernels they make."""

from tilelang.jit.compiler import compile, par_compile
from tilelang.jit.decorator import jit
from tilelang.jit.impl import JITImpl
from tilelang.jit.kernel import JITKernel

__all__ = ["JITImpl", "JITKernel", "compile", "jit", "par_compile"]
