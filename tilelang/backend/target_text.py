"""Targets written as text: a kind, a kind with flags, or a JSON object."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import tvm_ffi

from tilelang.errors import TargetError

__all__ = ["parse_target_text"]

_FALSE = frozenset({"0", "false", "off", "no"})
_TRUE = frozenset({"", "1", "true", "on", "yes"})


def parse_target_text(text: str) -> str | dict[str, Any]:
    """Parse a target string into a bare kind or tag, or a configuration dict.

    Parameters
    ----------
    text : str
        ``"cuda"``, ``"hip -mcpu=gfx950"``, ``"llvm -mcpu=znver4 -mattr=+avx2,+fma"`` or
        ``'{"kind": "cuda", "arch": "sm_90a"}'``. Flags take one or two dashes; a flag without a
        value is true; list options are separated by commas.

    Raises
    ------
    TargetError
        The JSON or a flag is malformed.

    Example
    -------
    >>> parse_target_text("cuda -arch=sm_90a")
    {'kind': 'cuda', 'arch': 'sm_90a'}
    """
    text = text.strip()
    if not text:
        raise TargetError("the target is an empty string; give a kind such as 'llvm' or 'cuda'")
    if text.startswith("{"):
        return _parse_json(text)
    try:
        kind, *flags = shlex.split(text)
    except ValueError as error:
        raise TargetError(f"target string {text!r}: {error}") from None
    if not flags:
        return kind
    types = _option_types(kind)
    config: dict[str, Any] = {"kind": kind}
    for flag in flags:
        key, value = _parse_flag(flag, text)
        if key in config:
            raise TargetError(f"target string {text!r} gives '{key}' twice")
        config[key] = _convert(value, types.get(key, ""), key, text)
    return config


def _parse_json(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise TargetError(
            f"target {text!r} is not valid JSON ({error}). Use JSON syntax, "
            'for example {"kind": "cuda", "arch": "sm_90a"}'
        ) from None
    return config


def _parse_flag(flag: str, text: str) -> tuple[str, str]:
    key, _, value = flag.lstrip("-").partition("=")
    if not flag.startswith("-") or not key:
        raise TargetError(
            f"target string {text!r}: {flag!r} is not a flag; write '-name=value' after the kind, "
            "for example 'hip -mcpu=gfx950'"
        )
    return key, value


def _option_types(kind: str) -> Mapping[str, str]:
    """Return TVM's declared type of each option of ``kind``.

    An alias or a kind TVM lacks gets the options of all kinds: a name has the same type in each.
    """
    kinds = [str(name) for name in tvm_ffi.get_global_func("target.ListTargetKinds")()]
    options = tvm_ffi.get_global_func("target.ListTargetKindOptionsFromName")
    types: dict[str, str] = {}
    for name in [kind] if kind in kinds else kinds:
        types.update({str(key): str(value) for key, value in options(name).items()})
    return types


def _convert(value: str, declared: str, key: str, text: str) -> Any:
    """Convert the text of a flag to TVM's declared type of the option."""
    if declared.startswith("Array"):
        return [item for item in value.split(",") if item]
    if declared == "bool":
        if value.lower() in _TRUE | _FALSE:
            return value.lower() in _TRUE
        raise TargetError(f"target string {text!r}: '-{key}' wants true or false, not {value!r}")
    if declared == "int" or (not declared and value.lstrip("-").isdigit()):
        try:
            return int(value)
        except ValueError:
            raise TargetError(
                f"target string {text!r}: '-{key}' wants an integer, not {value!r}"
            ) from None
    return value
