"""Every environment variable TileLang reads, as one typed object with live attributes.

``tilelang.env`` (also ``from tilelang.env import env``) has one string attribute per variable.
Reading it gives, in this order: the value assigned in this process, the environment variable, the
default. Nothing is read at import, so a change of ``os.environ`` is seen at once::

    tilelang.env.TILELANG_VERBOSE              # "0"
    tilelang.env.TILELANG_VERBOSE = "1"        # forced for this process
    del tilelang.env.TILELANG_VERBOSE          # back to the environment
    with tilelang.env.scope(TILELANG_DISABLE_CACHE="1"):
        ...                                    # forced inside the block only

The methods return parsed values (booleans, numbers, paths) and raise :class:`EnvVarError`, a
``ValueError``, when the text makes no sense. No other module reads ``os.environ``.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, overload

from tilelang.errors import EnvVarError

__all__ = [
    "CacheState",
    "EnvVar",
    "EnvVarError",
    "Environment",
    "disable_cache",
    "enable_cache",
    "env",
    "get_default_target",
    "is_cache_enabled",
    "resolve_pass_profile_threshold_ms",
]

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


class EnvVar:
    """Descriptor for one variable: forced value, else environment, else default.

    Parameters
    ----------
    default : str or callable
        The value when nothing is set; a callable gets the :class:`Environment`, for defaults that
        follow another variable.
    doc : str
        One line for ``python -m tilelang doctor`` and the documentation.
    aliases : tuple of str
        Other variable names that are consulted when the first is unset.
    """

    key: str

    def __init__(
        self,
        default: str | Callable[[Environment], str],
        doc: str,
        aliases: tuple[str, ...] = (),
    ) -> None:
        self._default = default
        self._forced_value: str | None = None
        self.doc = doc
        self.aliases = aliases

    def __set_name__(self, owner: type, name: str) -> None:
        self.key = name

    @overload
    def __get__(self, instance: None, owner: type) -> EnvVar: ...
    @overload
    def __get__(self, instance: Environment, owner: type) -> str: ...
    def __get__(self, instance: Environment | None, owner: type) -> EnvVar | str:
        if instance is None:
            return self
        if self._forced_value is not None:
            return self._forced_value
        for key in (self.key, *self.aliases):
            if (value := os.environ.get(key)) is not None:
                return value
        return self._default(instance) if callable(self._default) else self._default

    def __set__(self, instance: Environment, value: str | int | float | Path | None) -> None:
        if isinstance(value, bool):
            value = int(value)
        self._forced_value = None if value is None else str(value)

    def __delete__(self, instance: Environment) -> None:
        self._forced_value = None

    def source(self) -> str:
        """Where the value comes from: ``"assigned"``, ``"environment"`` or ``"default"``."""
        if self._forced_value is not None:
            return "assigned"
        present = any(key in os.environ for key in (self.key, *self.aliases))
        return "environment" if present else "default"


class CacheState:
    """Process-wide switch of the kernel cache, independent of ``TILELANG_DISABLE_CACHE``."""

    _enabled = True

    @classmethod
    def enable(cls) -> None:
        """Use the kernel cache (the default)."""
        cls._enabled = True

    @classmethod
    def disable(cls) -> None:
        """Compile every kernel anew and store nothing."""
        cls._enabled = False

    @classmethod
    def is_enabled(cls) -> bool:
        """Whether :meth:`disable` is not in force."""
        return cls._enabled


class Environment:
    """The variables (upper case, text) and their parsed forms (methods)."""

    # Attribute assignment reaches the descriptors below; any other name is a typing mistake.
    CacheState = CacheState

    TILELANG_CACHE_DIR = EnvVar(
        lambda _: os.path.join(os.path.expanduser("~"), ".tilelang", "cache"),
        "root of the kernel cache",
    )
    TILELANG_CACHE_MAX_BYTES = EnvVar(
        str(2 * 1024**3), "size bound of the kernel cache in bytes; least recently used go first"
    )
    TILELANG_TMP_DIR = EnvVar(
        lambda self: os.path.join(self.TILELANG_CACHE_DIR, "tmp"), "temporary files"
    )
    TILELANG_DISABLE_CACHE = EnvVar("0", "compile every kernel anew")
    TILELANG_KERNEL_CACHE_USE_LIB_STAMP = EnvVar("0", "native library hash in cache keys")
    TILELANG_AUTO_TUNING_DISABLE_CACHE = EnvVar("0", "no disk cache of tuning results")
    TILELANG_AUTO_TUNING_CPU_UTILITIES = EnvVar("0.9", "share of the cores tuning compiles on")
    TILELANG_AUTO_TUNING_CPU_COUNTS = EnvVar("-1", "compile workers of the tuner; -1 = share")
    TILELANG_AUTO_TUNING_MAX_CPU_COUNT = EnvVar("-1", "upper bound of compile workers; -1 = none")
    TILELANG_PRINT_ON_COMPILATION = EnvVar("1", "log the names of kernels being compiled")
    TILELANG_CLEANUP_TEMP_FILES = EnvVar("1", "delete files given to external compilers")
    TILELANG_HIP_SAVE_TEMP_FILES = EnvVar("0", "keep intermediate files of HIP compiles")
    TILELANG_JIT_DIAGNOSTICS = EnvVar("0", "log the phases of each compile")
    TILELANG_COMPILE_TIMEOUT_SECONDS = EnvVar("", "time limit of an external compiler")
    TILELANG_DEFAULT_TARGET = EnvVar("auto", "target when none is given: kind, flags or JSON")
    TILELANG_EXECUTION_BACKEND = EnvVar("auto", "execution backend when none is given")
    TILELANG_VERBOSE = EnvVar("0", "verbose compiles")
    TILELANG_NUM_THREADS = EnvVar("", "CPU kernels: number of threads; empty follows torch")
    TILELANG_INTERPRET = EnvVar("0", "run every kernel in the interpreter")
    TILELANG_EMULATOR_CHECKS = EnvVar(
        "", "checks of emulated kernels: race, bounds, uninit, banks, coalesce, or all"
    )
    TILELANG_LAYOUT_COST_MODEL = EnvVar("", "default of the pass config tl.layout_cost_model")
    TILELANG_ENABLE_IR_SPAN = EnvVar("1", "source locations on the traced program")
    TILELANG_ENABLE_DATA_RACE_CHECK = EnvVar("", "check parallel loops for write conflicts")
    TILELANG_PASS_DIFF = EnvVar("0", "before/after of each pass: terminal, html or both")
    TILELANG_PASS_DIFF_OUTPUT = EnvVar(
        os.path.join("tmp", "pass_diff_output"), "folder of the HTML pass diff"
    )
    TL_LOWER_TRACE = EnvVar("0", "record the IR after every pass")
    TL_LOWER_TRACE_DIR = EnvVar(os.path.join(".", "tmp", "lower_trace_dir"), "where records go")
    TILELANG_PASS_PROFILE = EnvVar("0", "time every pass")
    TILELANG_PASS_PROFILE_THRESHOLD_MS = EnvVar("0", "passes faster than this are not listed")
    TL_TEMPLATE_PATH = EnvVar("", "folder with the device headers, instead of the packaged one")
    SKIP_LOADING_TILELANG_SO = EnvVar("0", "do not load the native library")
    TILELANG_CUDA_DRIVER = EnvVar("libcuda.so.1", "NVIDIA's driver library, by name or path")
    CUDA_HOME = EnvVar("", "CUDA toolkit; empty searches", aliases=("CUDA_PATH",))
    ROCM_PATH = EnvVar("", "ROCm installation; empty searches", aliases=("ROCM_HOME",))
    CUDA_VISIBLE_DEVICES = EnvVar("", "the CUDA devices this process may use")
    TILELANG_CUDA_COMPILER = EnvVar("nvrtc", "compiler of CUDA source: nvrtc or nvcc")
    CC = EnvVar("", "C compiler; empty searches")
    CXX = EnvVar("", "C++ compiler; empty searches")
    TL_PERF_REGRESSION_FORMAT = EnvVar("text", "output of tilelang.testing.regression: text, json")
    TL_PERF_REGRESSION_ONLY = EnvVar("", "comma-separated names of regressions to run")
    TILELANG_RUN_PERF_TESTS = EnvVar("0", "run tests marked perf")
    TILELANG_TEST_DEVICE = EnvVar(
        "", "device of the tests: cuda or emulator; empty = CPU and a part emulated"
    )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.variables():
            raise AttributeError(_unknown_variable(name))
        object.__setattr__(self, name, value)

    @classmethod
    def variables(cls) -> Mapping[str, EnvVar]:
        """Every variable by name, in the order of declaration."""
        return {name: var for name, var in vars(cls).items() if isinstance(var, EnvVar)}

    @contextlib.contextmanager
    def scope(self, **values: str | int | float | Path | None) -> Iterator[Environment]:
        """Force ``values`` inside a ``with`` block and restore the previous state after it.

        ``None`` removes an override, so that the environment variable or default shows.
        """
        known = self.variables()
        for name in values:
            if name not in known:
                raise AttributeError(_unknown_variable(name))
        saved = {name: known[name]._forced_value for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, forced in saved.items():
                known[name]._forced_value = forced

    # -- cache and files ----------------------------------------------------------------------
    def cache_dir(self) -> Path:
        """Root of the kernel cache (``~`` expanded; not created)."""
        return Path(self.TILELANG_CACHE_DIR).expanduser()

    def tmp_dir(self) -> Path:
        """Folder for temporary files (``~`` expanded; not created)."""
        return Path(self.TILELANG_TMP_DIR).expanduser()

    def cache_max_bytes(self) -> int:
        """Size bound of the kernel cache in bytes; 0 means unbounded."""
        return self._int("TILELANG_CACHE_MAX_BYTES", minimum=0)

    def enable_cache(self) -> None:
        """Use the kernel cache in this process."""
        CacheState.enable()

    def disable_cache(self) -> None:
        """Do not use the kernel cache in this process."""
        CacheState.disable()

    def is_cache_globally_disabled(self) -> bool:
        """Whether ``TILELANG_DISABLE_CACHE`` turns the kernel cache off."""
        return self._flag("TILELANG_DISABLE_CACHE")

    def is_cache_enabled(self) -> bool:
        """Whether kernels are cached: neither variable nor :class:`CacheState` says no."""
        return CacheState.is_enabled() and not self.is_cache_globally_disabled()

    def use_kernel_cache_lib_stamp(self) -> bool:
        """Whether cache keys contain the hash of the native library."""
        return self._flag("TILELANG_KERNEL_CACHE_USE_LIB_STAMP")

    def should_cleanup_temp_files(self) -> bool:
        """Whether files given to external compilers are deleted."""
        return self._flag("TILELANG_CLEANUP_TEMP_FILES")

    # -- compilation --------------------------------------------------------------------------
    def get_default_target(self) -> str | dict[str, Any]:
        """``TILELANG_DEFAULT_TARGET`` as text, or as a mapping when it is a JSON object."""
        text = self.TILELANG_DEFAULT_TARGET.strip() or "auto"
        if not text.startswith("{"):
            return text
        try:
            return dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise EnvVarError(
                f"TILELANG_DEFAULT_TARGET starts like JSON but is not: {error} in {text}"
            ) from error

    def get_default_execution_backend(self) -> str:
        """Name of the execution backend used when none is given, or ``"auto"``."""
        return self.TILELANG_EXECUTION_BACKEND.strip() or "auto"

    def get_default_verbose(self) -> bool:
        """Whether compiles are verbose when the caller does not say."""
        return self._flag("TILELANG_VERBOSE")

    def get_compile_timeout_seconds(self) -> float | None:
        """Time limit of an external compiler in seconds, or None."""
        text = self.TILELANG_COMPILE_TIMEOUT_SECONDS.strip()
        if not text:
            return None
        return _finite_non_negative("TILELANG_COMPILE_TIMEOUT_SECONDS", text)

    def cuda_compiler(self) -> str:
        """Which compiler takes CUDA source: ``"nvrtc"`` (in this process) or ``"nvcc"``."""
        name = self.TILELANG_CUDA_COMPILER.strip().lower() or "nvrtc"
        if name not in ("nvrtc", "nvcc"):
            raise EnvVarError(f"TILELANG_CUDA_COMPILER must be nvrtc or nvcc, found {name!r}")
        return name

    def get_num_threads(self) -> int | None:
        """Threads a CPU kernel uses, or None to follow torch."""
        if not self.TILELANG_NUM_THREADS.strip():
            return None
        return self._int("TILELANG_NUM_THREADS", minimum=1)

    def should_interpret(self) -> bool:
        """Whether kernels run in the interpreter instead of being compiled."""
        return self._flag("TILELANG_INTERPRET")

    def is_print_on_compilation_enabled(self) -> bool:
        """Whether the name of a kernel is logged when it is compiled."""
        return self._flag("TILELANG_PRINT_ON_COMPILATION")

    def is_jit_diagnostics_enabled(self) -> bool:
        """Whether the phases of each compile are logged."""
        return self._flag("TILELANG_JIT_DIAGNOSTICS")

    def is_ir_span_enabled(self) -> bool:
        """Whether the traced program carries source locations."""
        return self._flag("TILELANG_ENABLE_IR_SPAN")

    def data_race_check(self) -> bool | None:
        """Whether parallel loops are checked for conflicts, or None when unset."""
        if not self.TILELANG_ENABLE_DATA_RACE_CHECK.strip():
            return None
        return self._flag("TILELANG_ENABLE_DATA_RACE_CHECK")

    def should_skip_native_library(self) -> bool:
        """Whether the native library must not be loaded."""
        return self._flag("SKIP_LOADING_TILELANG_SO")

    # -- autotuner ----------------------------------------------------------------------------
    def is_autotune_cache_disabled(self) -> bool:
        """Whether tuning results stay in memory only."""
        return self._flag("TILELANG_AUTO_TUNING_DISABLE_CACHE")

    def get_autotune_cpu_utilities(self) -> float:
        """Share of the usable cores, above 0 and up to 1, that tuning compiles on."""
        text = self.TILELANG_AUTO_TUNING_CPU_UTILITIES
        share = _finite_non_negative("TILELANG_AUTO_TUNING_CPU_UTILITIES", text)
        if not 0 < share <= 1:
            raise EnvVarError(
                f"TILELANG_AUTO_TUNING_CPU_UTILITIES must be in (0, 1], found {text!r}"
            )
        return share

    def get_autotune_cpu_counts(self) -> int | None:
        """Compile workers of the tuner, or None to derive them from the share of the cores."""
        count = self._int("TILELANG_AUTO_TUNING_CPU_COUNTS")
        return count if count > 0 else None

    def get_autotune_max_cpu_count(self) -> int | None:
        """Upper bound of compile workers, or None."""
        count = self._int("TILELANG_AUTO_TUNING_MAX_CPU_COUNT")
        return count if count > 0 else None

    # -- instrumentation ----------------------------------------------------------------------
    def is_pass_profile_enabled(self) -> bool:
        """Whether every pass is timed."""
        return self._flag("TILELANG_PASS_PROFILE")

    def get_pass_profile_threshold_ms(self) -> float:
        """Passes faster than this many milliseconds are left out of the report."""
        text = self.TILELANG_PASS_PROFILE_THRESHOLD_MS
        return _finite_non_negative("TILELANG_PASS_PROFILE_THRESHOLD_MS", text.strip() or 0)

    def pass_diff_modes(self) -> frozenset[str]:
        """Where to show the pass diff: a subset of ``{"terminal", "html"}``."""
        return self._outputs("TILELANG_PASS_DIFF")

    def lower_trace_modes(self) -> frozenset[str]:
        """Where to show the recorded lowering: a subset of ``{"terminal", "html"}``."""
        return self._outputs("TL_LOWER_TRACE")

    def run_perf_tests(self) -> bool:
        """Whether tests marked ``perf`` run."""
        return self._flag("TILELANG_RUN_PERF_TESTS")

    def test_device(self) -> str:
        """Where tests run their kernels: ``"cuda"``, ``"emulator"``, or ``""`` for a CPU too."""
        name = self.TILELANG_TEST_DEVICE.strip().lower()
        if name not in ("", "cuda", "emulator"):
            raise EnvVarError(f"TILELANG_TEST_DEVICE must be cuda or emulator, found {name!r}")
        return name

    # -- parsing ------------------------------------------------------------------------------
    def _flag(self, name: str) -> bool:
        text = getattr(self, name).strip().lower()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
        raise EnvVarError(f"{name} must be a switch such as 0 or 1, found {text!r}")

    def _int(self, name: str, minimum: int | None = None) -> int:
        text = getattr(self, name).strip()
        try:
            value = int(text)
        except ValueError:
            raise EnvVarError(f"{name} must be an integer, found {text!r}") from None
        if minimum is not None and value < minimum:
            raise EnvVarError(f"{name} must be at least {minimum}, found {value}")
        return value

    def _outputs(self, name: str) -> frozenset[str]:
        text = getattr(self, name).strip().lower()
        if text in _FALSE:
            return frozenset()
        if text in _TRUE or text == "terminal":
            return frozenset({"terminal"})
        if text == "html":
            return frozenset({"html"})
        if text == "both":
            return frozenset({"terminal", "html"})
        raise EnvVarError(f"{name} must be one of 0, 1, terminal, html, both; found {text!r}")


def _unknown_variable(name: str) -> str:
    close = difflib.get_close_matches(name, Environment.variables(), n=3)
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    return f"tilelang.env has no variable {name!r}{hint}"


def _finite_non_negative(name: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]  # other types raise, handled below
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise EnvVarError(f"{name} must be a finite non-negative number, found {value!r}")
    return number


env = Environment()


def get_default_target() -> str | dict[str, Any]:
    """The target used when a caller gives none; see :meth:`Environment.get_default_target`."""
    return env.get_default_target()


def resolve_pass_profile_threshold_ms(
    pass_configs: Mapping[Any, Any] | None,
    key: str = "tl.pass_profile_threshold_ms",
    get_env_threshold: Callable[[], float] | None = None,
) -> float:
    """The reporting threshold of pass timing in milliseconds.

    A value in ``pass_configs`` wins, also an explicit 0; without one the environment decides.

    Raises
    ------
    EnvVarError
        If the value is no finite non-negative number.
    """
    value = (pass_configs or {}).get(key)
    if value is None:
        return (get_env_threshold or env.get_pass_profile_threshold_ms)()
    return _finite_non_negative(str(key), value)


def enable_cache() -> None:
    """Use the kernel cache in this process (the default)."""
    CacheState.enable()


def disable_cache() -> None:
    """Compile every kernel anew in this process and store nothing."""
    CacheState.disable()


def is_cache_enabled() -> bool:
    """Whether kernels are cached, by this process's switch and ``TILELANG_DISABLE_CACHE``."""
    return env.is_cache_enabled()


class _EnvModule(ModuleType):
    """Makes the module itself behave like :data:`env` for variables and methods.

    The package binds ``tilelang.env`` to the object, but the name means the module whenever the
    import system binds it again (``importlib.reload``, ``sys.modules``); both must agree.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(env, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Environment.variables():
            setattr(env, name, value)
        else:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _EnvModule
