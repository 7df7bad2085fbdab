"""The metal dialect of the language: the neutral names plus the extensions of this backend.

``__init__.pyi`` is generated from :mod:`tilelang.language.exports`.
"""

from typing import Any as _Any

from tilelang.language import exports as _exports

__tilelang_dialect__ = "metal"
__all__ = _exports.install(globals(), _exports.modules_of("metal"))


def __getattr__(name: str) -> _Any:
    return _exports.missing_name("metal", __name__, name)
