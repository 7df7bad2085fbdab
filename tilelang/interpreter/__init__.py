"""Reference semantics: runs traced tile programs with numpy.

This package is the definition of what a program means; it shares nothing with lowering. It is
written to be checked by eye: :mod:`numbers` and :mod:`operators` are the numeric contract,
:mod:`memory` and :mod:`accesses` what reading and writing mean, :mod:`expressions` and
:mod:`statements` one rule a node, :mod:`tiles`, :mod:`atomics` and :mod:`lanes` what a block does
together.
"""

from tilelang.interpreter.api import as_kernel_function, interpret
from tilelang.interpreter.debug import BreakState
from tilelang.interpreter.machine import InterpreterError, Options

__all__ = ["BreakState", "InterpreterError", "Options", "as_kernel_function", "interpret"]
