"""Finds the manifests that ship with the package.

A backend is one folder below ``tilelang/``. Each of its files named ``backend.py`` or
``<variant>_backend.py`` registers one manifest when imported (``execution_backend.py`` lists the
execution backends of a manifest and is none). Importing them all, in the order of their names, is
everything that has to happen, so that a backend needs no edit outside its folder.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path

__all__ = ["load_builtin_backends"]


_PACKAGE = Path(__file__).parents[1]


def load_builtin_backends() -> tuple[str, ...]:
    """Import every manifest of the package and return the names of the modules.

    Errors of a manifest are not caught: a broken one must stop the import.
    """
    folders = sorted(info.name for info in pkgutil.iter_modules([str(_PACKAGE)]) if info.ispkg)
    loaded = []
    for folder in folders:
        files = pkgutil.iter_modules([str(_PACKAGE / folder)])
        for file in sorted(info.name for info in files if _is_manifest(info)):
            name = f"{_PACKAGE.name}.{folder}.{file}"
            import_module(name)
            loaded.append(name)
    return tuple(loaded)


def _is_manifest(info: pkgutil.ModuleInfo) -> bool:
    if info.ispkg or info.name == "execution_backend":
        return False
    return info.name == "backend" or info.name.endswith("_backend")
