"""The device compiler of CUDA source: NVRTC in this process, or nvcc.

Neither needs a GPU::

    binary = compile_source(text, "sm_90a", flags=("-maxrregcount=128",))
    binary.code          # a cubin
    binary.resources     # registers, spills and shared memory of every kernel
"""

from tilelang.cuda.compile.binary import DeviceBinary, Resources
from tilelang.cuda.compile.disassemble import show_ptx, show_sass
from tilelang.cuda.compile.driver import compile_source, compiler_stamp, validate_source

__all__ = [
    "DeviceBinary",
    "Resources",
    "compile_source",
    "compiler_stamp",
    "show_ptx",
    "show_sass",
    "validate_source",
]
