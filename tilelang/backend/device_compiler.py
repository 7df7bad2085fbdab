"""How a target backend turns generated source into device code, and device code into a callable.

A backend whose code runs on a device names one in its manifest; execution adapters find it there,
so they know no target kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tvm.target import Target

from tilelang.errors import BackendError

__all__ = ["DeviceBinaries", "DeviceCompiler", "DeviceLoader"]

DeviceBinaries: TypeAlias = Mapping[str, bytes]
Disassembler: TypeAlias = Callable[[str, str, DeviceBinaries, Target, Sequence[str]], str | None]
Describe: TypeAlias = Callable[[Any, DeviceBinaries, Target], Mapping[str, Sequence[str]]]
DeviceLoader: TypeAlias = Callable[[Any, DeviceBinaries, Mapping[str, Any]], Callable[..., Any]]


def _no_fingerprint() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class DeviceCompiler:
    """The device compiler of a target kind and the launcher of what it makes.

    Parameters
    ----------
    binary : str
        File name of the device code, such as ``"kernel.cubin"``; no two backends share one.
    compile : callable
        ``(source, target, flags, lines) -> {file name: contents}`` with at least the file
        ``binary``; ``lines`` is for messages. It needs no device.
    load : callable
        Makes the native launcher: ``(plan, binaries, lines) -> callable`` over the input arguments
        in order, where ``lines`` maps entry names to ``(file, line)``. What it needs of the machine
        is looked for at the first call, so a kernel can be made and inspected anywhere.
    load_in_python : callable, optional
        Like ``load``; the launcher is Python code over the bindings of the device's driver.
    disassemble : callable, optional
        ``(form, source, binaries, target, flags) -> text`` in a form such as ``"ptx"``, None if it
        has no such form.
    resource_usage : callable, optional
        ``(binaries) -> mapping`` with ``n_regs``, ``n_spills`` and ``n_max_threads``.
    describe : callable, optional
        ``(plan, binaries, target) -> {entry name: lines}``: what each kernel takes of the device,
        for people.
    fingerprint : callable, optional
        What the binaries depend on besides source, target and flags, such as a version.
    """

    binary: str
    compile: Callable[[str, Target, Sequence[str], Mapping[str, Any]], DeviceBinaries]
    load: DeviceLoader
    load_in_python: DeviceLoader | None = None
    disassemble: Disassembler | None = None
    resource_usage: Callable[[DeviceBinaries], Mapping[str, Any]] | None = None
    describe: Describe | None = None
    fingerprint: Callable[[], Mapping[str, str]] = _no_fingerprint

    def __post_init__(self) -> None:
        if not self.binary:
            raise BackendError("a device compiler needs the file name of its device code")
