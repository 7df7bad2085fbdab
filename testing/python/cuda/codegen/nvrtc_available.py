"""Whether device code can be compiled here."""

import functools

import pytest

from tilelang.cuda.compile.nvrtc import nvrtc_version
from tilelang.errors import DeviceCompileError


@functools.cache
def _version():
    try:
        return nvrtc_version()
    except DeviceCompileError:
        return None


requires_nvrtc = pytest.mark.skipif(_version() is None, reason="needs NVRTC")
