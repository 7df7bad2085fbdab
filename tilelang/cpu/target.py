"""CPU targets: the alias ``cpu``, and the machine this process runs on."""

from __future__ import annotations

import difflib
import functools
import platform
import re
from pathlib import Path
from typing import Any

import tvm_ffi
from tvm.target import Target

from tilelang.backend.target import TargetLike
from tilelang.errors import TargetError

__all__ = ["KINDS", "is_cpu_target", "local_cpu_target", "normalize_cpu_target"]

KINDS = ("c", "llvm")

# x86 features the code generator emits by itself, by LLVM's names. A virtual machine may report
# the model of its host and yet mask some of them.
_X86_FEATURES = (
    *("avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe", "gfni", "avxvnni"),
    *("vaes", "vpclmulqdq", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    *("avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg"),
    *("avx512vpopcntdq", "avx512bf16", "avx512fp16", "amx-tile", "amx-int8", "amx-bf16"),
)
_CPUINFO_NAMES = {"bmi": "bmi1", "lzcnt": "abm"}


def is_cpu_target(target: Target) -> bool:
    """Whether ``target`` is one the CPU backend compiles for."""
    return str(target.kind.name) in KINDS


@functools.cache
def _local_options() -> dict[str, Any]:
    cpu = str(tvm_ffi.get_global_func("target.llvm_get_system_cpu")())
    options: dict[str, Any] = {"kind": "llvm", "mcpu": cpu}
    implied = tvm_ffi.get_global_func("target.llvm_get_cpu_features")(Target(options))
    if missing := _masked_features({str(name) for name in implied}):
        options["mattr"] = [f"-{name}" for name in missing]
    return options


def _masked_features(implied: set[str], cpuinfo: str | None = None) -> list[str]:
    """Return the features the processor model implies but this machine does not offer.

    Parameters
    ----------
    implied : set of str
        LLVM's names of the model's features.
    cpuinfo : str, optional
        Text of ``/proc/cpuinfo``; read when left out. Other systems do not mask features.
    """
    if cpuinfo is None:
        path = Path("/proc/cpuinfo")
        if platform.machine() not in ("x86_64", "AMD64") or not path.exists():
            return []
        cpuinfo = path.read_text(encoding="utf-8", errors="replace")
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    if flags is None:
        return []
    present = {_plain(flag) for flag in flags.group(1).split()}
    return [
        name
        for name in _X86_FEATURES
        if name in implied and _plain(_CPUINFO_NAMES.get(name, name)) not in present
    ]


def _plain(feature: str) -> str:
    return re.sub(r"[-_.]", "", feature)


def local_cpu_target() -> dict[str, Any]:
    """Return the ``llvm`` target of this machine: its model, less the features it masks.

    The model is named, because LLVM's code generator takes ``native`` for an unknown processor.
    """
    return {
        key: list(value) if isinstance(value, list) else value
        for key, value in _local_options().items()
    }


def normalize_cpu_target(target: TargetLike) -> TargetLike | None:
    """Complete a bare ``"cpu"`` or ``"llvm"`` with this machine; check a given processor model.

    ``cpu`` means ``llvm``, and the model ``native`` this machine's. Otherwise a dict or ``Target``
    of kind ``llvm`` stays as it is: what it does not say is meant.

    Raises
    ------
    TargetError
        LLVM does not know the model; it would compile for a generic one without an error.
    """
    if isinstance(target, str):
        return local_cpu_target() if target in ("cpu", "llvm") else None
    config = dict(target.export()) if isinstance(target, Target) else target
    if config.get("kind") not in ("cpu", "llvm"):
        return None
    if config.get("mcpu") == "native":
        return {**config, **local_cpu_target()}
    if (model := config.get("mcpu")) is not None:
        _check_model(str(model), str(config.get("mtriple") or _local_triple()))
    return target if isinstance(target, Target) else {**config, "kind": "llvm"}


def _local_triple() -> str:
    return str(tvm_ffi.get_global_func("target.llvm_get_system_triple")())


def _check_model(model: str, triple: str) -> None:
    if tvm_ffi.get_global_func("target.llvm_is_valid_cpu")(model, triple):
        return
    machine = Target({"kind": "llvm", "mtriple": triple})
    models = [
        str(name) for name in tvm_ffi.get_global_func("target.llvm_get_cpu_archlist")(machine)
    ]
    near = difflib.get_close_matches(model, models, n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else "; 'native' means this machine"
    raise TargetError(f"LLVM knows no processor '{model}' for {triple}{hint}")
