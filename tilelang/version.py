"""The version of the package."""

from importlib import metadata

__all__ = ["__version__"]

try:
    __version__ = metadata.version("tilelang")
except metadata.PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0.1.0"
