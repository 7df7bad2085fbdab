"""The key of a compiled kernel: a digest of everything that shapes its code, and nothing else.

The program enters as its complete serialisation (``ir.save_json``: constants and attributes
included, closure values are constants of the program). Its printed script would not do: programs
that differ only in the attributes of a call print alike. Source locations are left out, so that
moving a kernel or editing a comment above it keeps its key, unless the generated code shows them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import ir

from tilelang.errors import CacheError
from tilelang.version import __version__

__all__ = ["host_cpu", "kernel_key", "namespace", "program_text", "source_digest"]

_SPAN = re.compile(r'\{"type":"ir\.Span","data":\{[^{}]*\}\}')
# What reports its line while the kernel runs.
_SHOWS_LINE = re.compile(r'"(tl\.print|tl\.device_assert|tirx\.assume|tirx\.AssertStmt)"')
_SOURCE_NAME = re.compile(r'\{"type":"ir\.SourceName","data":"(?:[^"\\]|\\.)*"\}')

# Parts of the package that run beside or after compilation.
_NOT_SHAPING = frozenset(
    {"__pycache__", "autotuner", "cache", "carver", "interpreter", "profiler", "testing", "tools"}
)


def program_text(program: Any, *, with_spans: bool = False) -> str:
    """Serialise a PrimFunc or IRModule; two texts are equal iff the programs are.

    Parameters
    ----------
    program : tvm.tirx.PrimFunc or tvm.IRModule
    with_spans : bool
        Keep source locations in the text. They also stay in a program that reports lines when it
        runs (``T.print``, assertions).

    Raises
    ------
    CacheError
        If the program holds an object that cannot be serialised (an attribute with an arbitrary
        Python object); such a program has no key.
    """
    try:
        text: str = ir.save_json(program)
    except TypeError as error:
        raise CacheError(f"the program cannot be serialised: {error}") from error
    if with_spans or _SHOWS_LINE.search(text):
        return text
    return _SOURCE_NAME.sub("{}", _SPAN.sub("{}", text))


def kernel_key(
    program: Any,
    *,
    target: tvm.target.Target,
    target_host: tvm.target.Target | None,
    execution_backend: str,
    pass_configs: Mapping[str, Any],
    compile_flags: Sequence[str],
    loader: Mapping[str, str],
    with_spans: bool = False,
) -> str:
    """The key, 64 hexadecimal digits.

    Parameters
    ----------
    program : tvm.tirx.PrimFunc
        With the attributes that a caller added.
    target, target_host
        The resolved targets.
    execution_backend : str
        Name of the execution backend.
    pass_configs : mapping
        Normalised pass configuration.
    compile_flags : sequence of str
        Flags for the device or C compiler, in order.
    loader : mapping
        What the execution adapter adds, such as a compiler version; see ``KernelAdapter``.
    with_spans : bool
        Source locations are part of the code.
    """
    record = {
        "program": program_text(program, with_spans=with_spans),
        "target": str(target),
        "target_host": None if target_host is None else str(target_host),
        "execution_backend": execution_backend,
        "pass_configs": dict(pass_configs),
        "compile_flags": list(compile_flags),
        "loader": dict(loader),
        "versions": _versions(),
        "sources": source_digest(),
    }
    text = json.dumps(record, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def namespace() -> str:
    """``"<version>/<platform>"``: the folder of the cache this process uses."""
    return f"{__version__}/{platform.system()}-{platform.machine()}".lower()


@functools.cache
def source_digest() -> str:
    """Digest of the package's files that take part in compiling, native libraries included."""
    digest = hashlib.sha256()
    # An editable install has two roots: the source tree and the folder of built files.
    for root in sys.modules[__name__.partition(".")[0]].__path__:
        _digest_folder(root, digest)
    return digest.hexdigest()


def _digest_folder(root: str, digest: Any) -> None:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _NOT_SHAPING)
        for name in sorted(files):
            path = f"{folder}/{name}"
            with open(path, "rb", buffering=0) as file:
                data = file.read()
            digest.update(f"{path[len(root) :]} {len(data)}\n".encode())
            digest.update(data)


@functools.cache
def host_cpu() -> str:
    """Name and features of this machine's CPU, for entries that hold its machine code."""
    name = str(tvm.get_global_func("target.llvm_get_system_cpu")())
    # What the machine offers, which under a hypervisor is less than the model's name promises.
    features = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    enabled = sorted(str(feature) for feature, on in (features or {}).items() if on)
    return f"{name} {' '.join(enabled)}"


@functools.cache
def _versions() -> dict[str, str]:
    return {
        "tilelang": __version__,
        "tvm": str(tvm.__version__),
        "tvm_ffi": str(tvm_ffi.__version__),
    }
