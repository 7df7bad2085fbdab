"""Options of NVRTC and nvcc, from the user's flags and the pass configuration."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilelang.cuda.headers import include_dir
from tilelang.transform.pass_config import PassConfigKey, pass_option

__all__ = ["compile_options"]

_STANDARD = "-std=c++17"
# Options of nvcc that mean nothing to NVRTC: the host compiler, its optimiser, parallel builds.
_HOST_ONLY = frozenset(
    {"-O0", "-O1", "-O2", "-O3", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-w"}
)
_HOST_ONLY_WITH_VALUE = ("-Xcompiler", "--compiler-options", "--threads", "-t", "-ccbin", "-O")
# Options whose value may stand in the next argument.
_SEPARATE = {
    "-Xptxas": "--ptxas-options",
    "--ptxas-options": "--ptxas-options",
    "-maxrregcount": "--maxrregcount",
    "--maxrregcount": "--maxrregcount",
    "-I": "-I",
    "--include-path": "-I",
    "-D": "-D",
    "--define-macro": "-D",
    "-include": "-include",
    "-std": "-std",
    "--std": "-std",
}
_SHORT = {"-G": "--device-debug", "-lineinfo": "--generate-line-info"}


def compile_options(
    flags: Sequence[str], configs: Mapping[str, Any] | None, *, host: bool
) -> list[str]:
    """The options besides the architecture.

    Parameters
    ----------
    flags : sequence of str
        The user's, spelled as for nvcc; they win over the configuration.
    configs : mapping, optional
        A normalised pass configuration.
    host : bool
        For nvcc; NVRTC has no options of the host compiler.
    """
    options = [f"-I{include_dir()}", "--ptxas-options=-v"]
    if pass_option(configs, PassConfigKey.TL_ENABLE_FAST_MATH):
        options.append("--use_fast_math")
    level = pass_option(configs, PassConfigKey.TL_PTXAS_REGISTER_USAGE_LEVEL)
    if level is not None:
        options.append(f"--ptxas-options=--register-usage-level={level}")
    if pass_option(configs, PassConfigKey.TL_EMIT_LINE_DIRECTIVES):
        options.append("--generate-line-info")
    extra = pass_option(configs, PassConfigKey.TL_DEVICE_COMPILE_FLAGS) or ()
    options += _normalized([extra] if isinstance(extra, str) else extra, host)
    options += _normalized(flags, host)
    if not any(option.startswith("-std=") for option in options):
        options.append(_STANDARD)
    return list(dict.fromkeys(options))


def _normalized(flags: Iterable[str], host: bool) -> list[str]:
    """One option an argument, in the long spelling where the compilers differ."""
    parts = [part for flag in flags for part in shlex.split(flag)]
    found: list[str] = []
    position = 0
    while position < len(parts):
        part = parts[position]
        position += 1
        name, equals, value = part.partition("=")
        if name in _SEPARATE and not equals and position < len(parts):
            equals, value = "=", parts[position]
            position += 1
        if not host and part in _HOST_ONLY:
            continue
        if not host and name in _HOST_ONLY_WITH_VALUE:
            position += not equals
            continue
        if name in _SEPARATE and equals:
            found += _joined(_SEPARATE[name], value)
        else:
            found.append(_SHORT.get(part, part))
    return found


def _joined(name: str, value: str) -> list[str]:
    if name == "--ptxas-options":
        return [f"{name}={option}" for option in value.split(",")]
    return [f"{name}{value}" if name in ("-I", "-D") else f"{name}={value}"]
