"""The cpu dialect of the language: the neutral names; this backend has no extensions.

``__init__.pyi`` is generated from :mod:`tilelang.language.exports`.
"""

from typing import Any as _Any

from tilelang.language import exports as _exports

__tilelang_dialect__ = "cpu"
__all__ = _exports.install(globals(), _exports.modules_of("cpu"))


def __getattr__(name: str) -> _Any:
    return _exports.missing_name("cpu", __name__, name)
