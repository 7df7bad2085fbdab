"""The tile language: ``import tilelang.language as T``.

This module is the CUDA-compatible facade: the neutral names, which every backend shares, and the
names of the CUDA dialect. The neutral ones are here from the start; the others are found when they
are first asked for. A program for one backend can import its dialect instead, for example
``from tilelang.cpu import language as T``, which has no name that backend lacks.

``__init__.pyi`` is generated from :mod:`tilelang.language.exports`.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from tilelang.language import exports as _exports

__tilelang_dialect__ = "cuda"

# CUDA names stay out of the namespace until they are asked for: their modules import submodules
# of this package, which must be complete by then whichever is imported first.
__all__ = _exports.install(globals(), _exports.NEUTRAL)


def __getattr__(name: str) -> _Any:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    dialect = vars(_import_module("tilelang.cuda.language"))
    return dialect[name] if name in dialect else _exports.missing_name("cuda", __name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_import_module("tilelang.cuda.language").__all__})
