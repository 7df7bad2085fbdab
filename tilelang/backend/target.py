"""Targets: normalising what the user gives, detecting what the machine has.

Backends contribute three kinds of rules from their ``target.py``: *normalisers* complete a target
of theirs (a bare kind gets the local architecture, an alias its real kind), *detectors* say
whether their device is present, and *kind aliases* tell targets TVM stores under another kind.
Nothing here knows a backend.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, overload

from tvm.target import Target

from tilelang.backend.target_text import parse_target_text
from tilelang.env import env
from tilelang.errors import TargetError

__all__ = [
    "TargetLike",
    "UnknownTargetError",
    "auto_detect_target",
    "determine_target",
    "list_target_detectors",
    "list_target_normalizers",
    "register_fallback_target",
    "register_target_detector",
    "register_target_kind_alias",
    "register_target_normalizer",
    "resolve_target_host",
    "target_for_device",
    "target_kind",
]

TargetLike: TypeAlias = "str | dict[str, Any] | Target"
_Detector: TypeAlias = "Callable[[], TargetLike | None]"
_Normalizer: TypeAlias = "Callable[[TargetLike], TargetLike | None]"

_TARGET_DETECTORS: dict[str, _Detector] = {}
_DETECTOR_RANKS: dict[str, int] = {}
_TARGET_NORMALIZERS: dict[str, _Normalizer] = {}
_DETECTORS_OF_DEVICE: dict[str, list[str]] = {}
_KIND_ALIASES: dict[tuple[str, str], str] = {}
_FALLBACKS: list[_Detector] = []


class UnknownTargetError(TargetError, AssertionError):
    """TVM does not accept the target. Also an ``AssertionError``, which earlier releases raised."""


def register_target_detector(
    name: str,
    detect: _Detector,
    *,
    override: bool = False,
    device_type: str | None = None,
    rank: int = 100,
) -> None:
    """Add a detector to the order ``auto`` tries.

    Parameters
    ----------
    name : str
        Identifies the detector.
    detect : callable
        Returns a target when the device and its driver are present, else ``None``. Cheap: it runs
        whenever nobody said what to compile for.
    override : bool
        Replace a detector of this name in its place.
    device_type : str, optional
        The ``torch.device`` type of the tensors that live on this device.
    rank : int
        Detectors of lower rank are tried first, equal ones in order of registration.

    Raises
    ------
    TargetError
        The name is taken and ``override`` is false.
    """
    _register(_TARGET_DETECTORS, "detector", name, detect, override)
    _DETECTOR_RANKS[name] = rank
    ordered = sorted(_TARGET_DETECTORS.items(), key=lambda item: _DETECTOR_RANKS.get(item[0], 100))
    _TARGET_DETECTORS.clear()
    _TARGET_DETECTORS.update(ordered)
    if device_type is not None:
        names = _DETECTORS_OF_DEVICE.setdefault(device_type, [])
        if name not in names:
            names.append(name)


def register_target_normalizer(
    name: str, normalize: _Normalizer, *, override: bool = False
) -> None:
    """Add a rule ``normalize(target) -> target | None`` applied to every target given.

    ``None`` means "not mine". A string arrives as a bare kind or alias (flags and JSON are parsed
    before), everything else as a dict or a ``Target``.

    Raises
    ------
    TargetError
        The name is taken and ``override`` is false.
    """
    _register(_TARGET_NORMALIZERS, "normalizer", name, normalize, override)


def register_fallback_target(detect: _Detector, device_type: str) -> None:
    """Set what ``auto`` compiles for when no detector finds a device."""
    _FALLBACKS[:] = [detect]
    _DETECTORS_OF_DEVICE[device_type] = []


def register_target_kind_alias(kind: str, key: str, alias: str) -> None:
    """Treat targets of TVM kind ``kind`` that carry ``key`` as kind ``alias``."""
    _KIND_ALIASES[kind, key] = alias


def _register(table: dict[str, Any], what: str, name: str, function: Any, override: bool) -> None:
    if not name:
        raise TargetError(f"a target {what} needs a name")
    if name in table and not override and table[name] != function:
        raise TargetError(f"a target {what} '{name}' is already registered; pass override=True")
    table[name] = function


def list_target_detectors() -> tuple[str, ...]:
    """Return the names of the detectors in the order they are tried."""
    return tuple(_TARGET_DETECTORS)


def list_target_normalizers() -> tuple[str, ...]:
    """Return the names of the normalisers in the order they are applied."""
    return tuple(_TARGET_NORMALIZERS)


def target_kind(target: Target) -> str:
    """Return the kind a backend declares for ``target``, after kind aliases."""
    kind = str(target.kind.name)
    for key in target.keys:
        if (alias := _KIND_ALIASES.get((kind, str(key)))) is not None:
            return alias
    return kind


def auto_detect_target() -> TargetLike:
    """Return the first detected target, else the fallback (the local CPU).

    Raises
    ------
    TargetError
        Nothing was detected and no fallback is registered.
    """
    for detect in (*_TARGET_DETECTORS.values(), *_FALLBACKS):
        if (target := detect()) is not None:
            return target
    raise TargetError(
        f"no device found; tried {', '.join(_TARGET_DETECTORS) or 'no detector'}. "
        "Name a target, for example target='llvm'"
    )


def target_for_device(device_type: str) -> TargetLike:
    """Return the target of tensors on a ``torch.device`` type such as ``"cpu"`` or ``"cuda"``.

    Raises
    ------
    TargetError
        No backend serves the device type, or its device was not found.
    """
    if device_type not in _DETECTORS_OF_DEVICE:
        known = ", ".join(sorted(_DETECTORS_OF_DEVICE)) or "none"
        raise TargetError(
            f"no backend runs kernels on tensors of device '{device_type}'; known devices: {known}"
        )
    names = _DETECTORS_OF_DEVICE[device_type]
    detectors = [_TARGET_DETECTORS[name] for name in names if name in _TARGET_DETECTORS]
    for detect in detectors if names else _FALLBACKS:
        if (target := detect()) is not None:
            return target
    raise TargetError(f"device '{device_type}' was not found by {', '.join(names) or 'anyone'}")


@overload
def determine_target(
    target: TargetLike | None = ..., return_object: Literal[False] = ...
) -> TargetLike: ...
@overload
def determine_target(target: TargetLike | None, return_object: Literal[True]) -> Target: ...
@overload
def determine_target(
    target: TargetLike | None = ..., *, return_object: Literal[True]
) -> Target: ...
def determine_target(target: TargetLike | None = "auto", return_object: bool = False) -> TargetLike:
    """Normalise a target and check that TVM accepts it.

    Parameters
    ----------
    target : str, dict, Target or None
        A kind, an alias (``"cpu"``), a flag string (``"hip -mcpu=gfx950"``), JSON, a dict, or a
        ``Target``. ``"auto"`` and ``None`` mean: the enclosing ``with Target(...)``, else
        ``TILELANG_DEFAULT_TARGET``, else what :func:`auto_detect_target` finds.
    return_object : bool
        Return a ``Target`` instead of the normalised description.

    Raises
    ------
    TargetError
        The description is malformed.
    UnknownTargetError
        TVM rejects it (unknown kind, option or value).

    Example
    -------
    >>> determine_target("c")
    'c'
    """
    if target is None or target == "auto":
        target = implicit_target()
        if target is None:
            target = auto_detect_target()
    description = _normalize(target)
    checked = _to_target(description)
    return checked if return_object else description


def implicit_target() -> TargetLike | None:
    """Return the target the surroundings name: ``with Target(...)``, then the environment."""
    current = Target.current(allow_none=True)
    if current is not None:
        return current
    default = env.get_default_target()
    return None if default == "auto" else default


def _normalize(target: TargetLike) -> TargetLike:
    if isinstance(target, str):
        target = parse_target_text(target)
    elif isinstance(target, Mapping):
        target = dict(target)
    elif not isinstance(target, Target):
        raise TargetError(
            "a target is a string, a dict or a tvm.target.Target, "
            f"not {type(target).__name__}: {target!r}"
        )
    for normalize in _TARGET_NORMALIZERS.values():
        result = normalize(target)
        target = target if result is None else result
    return target


def _to_target(description: TargetLike) -> Target:
    if isinstance(description, Target):
        return description
    try:
        return Target(description)
    except (ValueError, TypeError, RuntimeError) as error:
        raise UnknownTargetError(_explain(description, error)) from None


def _explain(description: str | dict[str, Any], error: Exception) -> str:
    # TVM appends "Target creation from ... failed: <the description again>".
    reason = str(error).split("Target creation from")[0].strip() or type(error).__name__
    message = f"{description!r} is not a valid target config dict, kind or tag: {reason}"
    kinds = sorted(Target.list_kinds())
    kind = str(description if isinstance(description, str) else description.get("kind"))
    if kind in kinds:
        return message
    near = difflib.get_close_matches(kind, kinds, n=1, cutoff=0.7)
    hint = f"Did you mean '{near[0]}'?" if near else f"Kinds: {', '.join(kinds)}"
    return f"{message} {hint}"


def resolve_target_host(target: Target, target_host: TargetLike | None = None) -> Target:
    """Return the host target for ``target``: as given, else its own, else ``llvm``, else ``c``.

    A host of the same kind as the device shares the device's options when only its kind is given:
    on a CPU both halves of a kernel are compiled for the same machine.
    """
    if target_host is None:
        if target.host is not None:
            return target.host
        kinds = Target.list_kinds()
        target_host = "llvm" if "llvm" in kinds else "c"
        if target.kind.name != target_host:
            # Not completed with the local machine's features: GPU host code is carried elsewhere.
            return _to_target(target_host)
    if isinstance(target_host, str) and target_host == target.kind.name:
        return _without_host(target)
    return determine_target(target_host, return_object=True)


def _without_host(target: Target) -> Target:
    if target.host is None:
        return target
    return Target({key: value for key, value in target.export().items() if key != "host"})
