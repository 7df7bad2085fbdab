"""Installs the observers a pass configuration or the environment asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tvm.ir import IRModule

from tilelang.backend.pass_pipeline.observer import PassObserver, observe
from tilelang.backend.pass_pipeline.observers import (
    DiffObserver,
    DumpObserver,
    HtmlDiffObserver,
    TimingReport,
)
from tilelang.env import env, resolve_pass_profile_threshold_ms
from tilelang.transform.pass_config import PassConfigKey, pass_flag, pass_option
from tilelang.transform.pass_context import get_pass_context

__all__ = ["configured_observers", "session"]


def configured_observers(name: str) -> tuple[PassObserver, ...]:
    """Return the observers asked for, none by default; ``name`` labels their output."""
    config = get_pass_context().config
    observers: list[PassObserver] = []
    if pass_flag(config, PassConfigKey.TL_PASS_PROFILE) or env.is_pass_profile_enabled():
        observers.append(TimingReport(name, resolve_pass_profile_threshold_ms(config)))
    if pass_flag(config, PassConfigKey.TL_ENABLE_DUMP_IR):
        folder = Path(pass_option(config, PassConfigKey.TL_DUMP_IR_DIR))
        observers.append(DumpObserver(folder / name))
    if modes := env.pass_diff_modes():
        if "terminal" in modes:
            observers.append(DiffObserver())
        if "html" in modes:
            observers.append(HtmlDiffObserver(Path(env.TILELANG_PASS_DIFF_OUTPUT) / name))
    return tuple(observers)


@contextmanager
def session(mod: IRModule) -> Iterator[None]:
    """Run the passes inside the block under the configured observers."""
    observers = configured_observers("_".join(sorted(gv.name_hint for gv in mod.get_global_vars())))
    if not observers:
        yield
        return
    with observe(*observers):
        try:
            yield
        finally:
            for observer in observers:
                observer.finish()
