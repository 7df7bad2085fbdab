"""The tracing front end: a Python function is rewritten, run once, and leaves behind a PrimFunc.

Layers: ``names`` and ``rewrite*`` (syntax); ``values logic operators subscript binding control
loops`` gathered in ``runtime`` (what rewritten code calls); ``source`` (function in, function out);
``session`` and ``tracer`` (arguments, outputs, one trace); and the public face: ``prim_func``,
``macro``, ``function`` (eager kernels for the JIT), ``mode``, ``const``.
"""

from tvm.tirx import PrimFunc

from tilelang.language.eager.const import const
from tilelang.language.eager.function import ConstSource, EagerFunction, EagerSignature
from tilelang.language.eager.macro import Macro, Ref, inline, macro, meta_class
from tilelang.language.eager.mode import detect_mode
from tilelang.language.eager.prim_func import prim_func
from tilelang.language.eager.session import ScalarSpec

JITFunc = EagerFunction

__all__ = [
    "ConstSource",
    "EagerFunction",
    "EagerSignature",
    "JITFunc",
    "Macro",
    "PrimFunc",
    "Ref",
    "ScalarSpec",
    "const",
    "detect_mode",
    "inline",
    "macro",
    "meta_class",
    "prim_func",
]
