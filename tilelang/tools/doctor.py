"""``python -m tilelang doctor``: what is installed, what works here, and why the rest does not."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal

import tilelang
from tilelang.env import Environment, env
from tilelang.utils.device import get_available_cpu_count

# Imports inside functions: a part that cannot be imported is a finding, no failure of the doctor.

__all__ = ["Finding", "add_arguments", "diagnose", "run"]

Status = Literal["ok", "info", "unavailable", "broken"]

_PACKAGES = (
    "apache-tvm", "apache-tvm-ffi", "torch", "numpy", "ml-dtypes", "z3-solver",
    "cuda-python", "apache-tvm-ffi-orcjit",
)  # fmt: skip
_STYLE = {"ok": "green", "info": "", "unavailable": "yellow", "broken": "bold red"}


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Parameters
    ----------
    section : str
        ``"machine"``, ``"packages"``, ``"cuda"``, ``"backends"``, ``"kernels"`` or ``"settings"``.
    name : str
        What is reported on.
    status : {"ok", "info", "unavailable", "broken"}
        ``"unavailable"`` is a thing this machine or version lacks, ``"broken"`` one that should
        work and does not: it makes the exit status 1.
    detail : str
        Version, value or reason.
    """

    section: str
    name: str
    status: Status
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the ``doctor`` command."""
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--no-kernel", action="store_true", help="do not compile and run a kernel")


def run(options: argparse.Namespace) -> int:
    """Run the command; returns 0 if nothing is broken, else 1."""
    findings = list(diagnose(run_kernels=not options.no_kernel))
    if options.json:
        for finding in findings:
            sys.stdout.write(json.dumps(dataclasses.asdict(finding)) + "\n")
    else:
        _print(findings)
    return int(any(finding.status == "broken" for finding in findings))


def diagnose(run_kernels: bool = True) -> Iterator[Finding]:
    """Examine this machine.

    Parameters
    ----------
    run_kernels : bool
        Compile a small kernel with every combination of target and execution backend that says it
        works, run it, and compare the result.
    """
    yield from _machine()
    yield from _packages()
    yield from _native_library()
    yield from _cuda()
    yield from _backends()
    if run_kernels:
        yield from _kernels()
    yield from _settings()


def _machine() -> Iterator[Finding]:
    import tvm  # the slow import of every command that compiles

    yield Finding("machine", "python", "info", f"{platform.python_version()} ({sys.executable})")
    yield Finding("machine", "system", "info", platform.platform())
    cpu = str(tvm.get_global_func("target.llvm_get_system_cpu")())
    yield Finding("machine", "cpu", "info", f"{cpu}, {get_available_cpu_count()} usable cores")
    yield from _gpus()


def _gpus() -> Iterator[Finding]:
    import torch  # tells what devices there are

    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        detail = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
        yield Finding("machine", f"gpu {index}", "info", detail)


def _packages() -> Iterator[Finding]:
    folder = str(tilelang.__path__[0])
    yield Finding("packages", "tilelang", "ok", f"{tilelang.__version__}, {folder}")
    for package in _PACKAGES:
        try:
            yield Finding("packages", package, "ok", metadata.version(package))
        except metadata.PackageNotFoundError:
            yield Finding("packages", package, "unavailable", "not installed")


def _native_library() -> Iterator[Finding]:
    try:
        native = importlib.import_module("tilelang._native")
        kinds = native.target_kinds_status()
    except Exception as error:  # noqa: BLE001  (whatever stops the import is what is reported)
        yield Finding("packages", "native library", "broken", _one_line(error))
        return
    yield Finding("packages", "native library", "ok", str(native.library_path()))
    for name, status in (("target kind hip", kinds.hip), ("cuda option code", kinds.code)):
        good = status == "registered"
        yield Finding("packages", name, "ok" if good else "unavailable", str(status))


def _cuda() -> Iterator[Finding]:
    try:
        parts = list(importlib.import_module("tilelang.cuda.diagnose").diagnose())
    except Exception as error:  # noqa: BLE001  (whatever stops the examination is reported)
        yield Finding("cuda", "examination", "broken", _one_line(error))
        return
    for part in parts:
        status: Status = "ok" if part.found else "unavailable"
        yield Finding("cuda", part.name, status, part.detail)


def _backends() -> Iterator[Finding]:
    from tilelang.backend import list_backends
    from tilelang.backend.unavailable import backends_that_compile

    compiling = {text.split(" ")[0] for text in backends_that_compile()}
    for name, module in list_backends().items():
        kinds = " or ".join(module.target_kinds)
        if name not in compiling:
            reason = f"target {kinds}: cannot compile kernels in this version"
            yield Finding("backends", name, "unavailable", reason)
            continue
        device = _device_status(module.device_type)
        detail = f"target {kinds}; {device or 'device found'}"
        yield Finding("backends", name, "unavailable" if device else "ok", detail)
        for spec in module.execution_backends:
            usable, reason = _asked(spec.is_available)
            detail = "usable" if usable else (reason or f"needs {spec.requires or 'more'}")
            status: Status = "ok" if usable else "unavailable"
            yield Finding("backends", f"{name} / {spec.name}", status, detail)


def _device_status(device_type: str) -> str:
    """Why the device of a backend cannot be used; empty if it can."""
    from tilelang.backend.target import target_for_device
    from tilelang.errors import TargetError

    try:
        target_for_device(device_type)
    except TargetError as error:
        return _one_line(error)
    return ""


def _asked(question: Callable[[], bool]) -> tuple[bool, str]:
    try:
        return bool(question()), ""
    except Exception as error:  # noqa: BLE001  (a failing probe means "no", with its reason)
        return False, _one_line(error)


def _kernels() -> Iterator[Finding]:
    from tilelang.backend import list_backends
    from tilelang.backend.unavailable import backends_that_compile

    compiling = {text.split(" ")[0] for text in backends_that_compile()}
    for name, module in list_backends().items():
        if name not in compiling or _device_status(module.device_type):
            continue
        for kind in module.target_kinds:
            for spec in module.execution_backends:
                if spec.supports_target is not None and not spec.matches(_target(kind)):
                    continue
                if _asked(spec.is_available)[0]:
                    yield _try_kernel(kind, spec.name)


def _target(kind: str) -> Any:
    from tilelang.backend.target import determine_target

    return determine_target(kind, return_object=True)


def _try_kernel(kind: str, execution_backend: str) -> Finding:
    """Compile without the cache, run and compare; a wrong result is broken too."""
    import torch

    name = f"{kind} / {execution_backend}"
    try:
        from tilelang.jit.compiler import compile as compile_kernel
        from tilelang.tools.doctor_kernel import N, scaled_sum

        with env.scope(TILELANG_DISABLE_CACHE="1", TILELANG_PRINT_ON_COMPILATION="0"):
            started = time.perf_counter()
            kernel = compile_kernel(
                scaled_sum(), out_idx=-1, target=kind, execution_backend=execution_backend
            )
            seconds = time.perf_counter() - started
        device = kernel.get_profiler().device
        a, b = torch.randn(N, device=device), torch.randn(N, device=device)
        wrong = int((kernel(a, b) - (2 * a + b)).abs().gt(1e-5).sum())
    except Exception as error:  # noqa: BLE001  (reported, with its kind)
        return Finding("kernels", name, "broken", f"{type(error).__name__}: {_one_line(error)}")
    if wrong:
        return Finding("kernels", name, "broken", f"{wrong} of {N} results are wrong")
    return Finding("kernels", name, "ok", f"compiled in {seconds * 1e3:.0f} ms, result right")


def _settings() -> Iterator[Finding]:
    yield Finding("settings", "kernel cache", *_cache_status())
    for name, variable in Environment.variables().items():
        if variable.source() == "environment":
            yield Finding("settings", name, "info", f"{getattr(env, name)}  ({variable.doc})")


def _cache_status() -> tuple[Status, str]:
    folder = env.cache_dir()
    if not env.is_cache_enabled():
        return "unavailable", "turned off by TILELANG_DISABLE_CACHE"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        return "broken", f"{folder} cannot be written: {error.strerror}"
    return "ok", str(folder)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for section in dict.fromkeys(finding.section for finding in findings):
        table = Table(title=section, title_justify="left", show_header=False, title_style="bold")
        for column in ("name", "status", "detail"):
            table.add_column(column, overflow="fold")
        for finding in findings:
            if finding.section == section:
                style = _STYLE[finding.status]
                shown = f"[{style}]{finding.status}[/]" if style else ""
                table.add_row(finding.name, shown, finding.detail.replace("[", "\\["))
        console.print(table)
    broken = [finding.name for finding in findings if finding.status == "broken"]
    console.print(f"[bold red]broken: {', '.join(broken)}[/]" if broken else "nothing is broken")
