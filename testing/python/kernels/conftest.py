"""Where the kernels of this folder run: see ``devices``. Without a marker that is ``llvm``."""

from devices import pytest_generate_tests, way

__all__ = ["pytest_generate_tests", "way"]
