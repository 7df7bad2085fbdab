"""TileLang: tile programs in Python, compiled for CPUs and GPUs."""

from importlib import metadata as _metadata

try:
    __version__ = _metadata.version("tilelang")
except _metadata.PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0.1.0"
