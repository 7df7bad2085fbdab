"""Finds the manifests that ship with the package.

A backend is one folder below ``tilelang/``. Each of its files named ``backend.py`` or
``<variant>_backend.py`` registers one manifest when imported (``execution_backend.py`` lists the
execution backends of a manifest and is none). Importing them all, in the order of their names, is
everything that has to happen, so that a backend needs no edit outside its folder.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

import tilelang

__all__ = ["load_builtin_backends"]


def load_builtin_backends() -> tuple[str, ...]:
    """Import every manifest of the package and return the names of the modules.

    Errors of a manifest are not caught: a broken one must stop the import.
    """
    loaded = []
    for package in sorted(pkgutil.iter_modules(tilelang.__path__), key=lambda info: info.name):
        if not package.ispkg or package.name == __name__.rsplit(".", 2)[-2]:
            continue
        folders = [f"{path}/{package.name}" for path in tilelang.__path__]
        files = [info.name for info in pkgutil.iter_modules(folders) if not info.ispkg]
        for file in sorted(filter(_is_manifest, files)):
            name = f"tilelang.{package.name}.{file}"
            import_module(name)
            loaded.append(name)
    return tuple(loaded)


def _is_manifest(file: str) -> bool:
    return file == "backend" or (file.endswith("_backend") and file != "execution_backend")
