"""What is to be compiled: a program with everything a caller may say about it, resolved once."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx as T

from tilelang.backend import BackendContext
from tilelang.cache.key import kernel_key
from tilelang.env import env
from tilelang.errors import TraceError, TraceTypeError
from tilelang.jit.adapter import find_adapter
from tilelang.transform.pass_config import PassConfigKey, normalize_pass_configs, pass_flag

__all__ = ["CompileFlags", "CompileRequest", "OutIdx", "with_outputs"]

OutIdx = int | Sequence[int] | None
CompileFlags = str | Sequence[str] | None

_OUT_IDX = "tilelang_out_idx"
_PASS_CONFIGS = "tilelang_pass_configs"
_COMPILE_FLAGS = "tilelang_compile_flags"

# Whoever sets one of these wants to watch the passes run, which a cache hit would skip.
_OBSERVING = (
    PassConfigKey.TL_ENABLE_DUMP_IR,
    PassConfigKey.TL_PASS_PROFILE,
    PassConfigKey.TL_AST_PRINT_ENABLE,
    PassConfigKey.TL_LAYOUT_VISUALIZATION_ENABLE,
)


@dataclass(frozen=True)
class CompileRequest:
    """A program, where it shall run, and how it shall be compiled.

    Parameters
    ----------
    func : tvm.tirx.PrimFunc
        The program; its attributes name the outputs.
    context : BackendContext
        The resolved targets and backends.
    pass_configs : mapping
        Normalised pass configuration: the function's own, overridden by the caller's.
    compile_flags : tuple of str
        The function's own flags followed by the caller's.
    verbose : bool
        Log the phases.
    """

    func: T.PrimFunc
    context: BackendContext
    pass_configs: Mapping[str, Any]
    compile_flags: tuple[str, ...]
    verbose: bool

    @classmethod
    def make(
        cls,
        func: T.PrimFunc,
        context: BackendContext,
        *,
        out_idx: OutIdx = None,
        pass_configs: Mapping[Any, Any] | None = None,
        compile_flags: CompileFlags = None,
        verbose: bool | None = None,
    ) -> CompileRequest:
        """Merge what the function says about itself with what the caller says.

        Raises
        ------
        TraceTypeError
            If ``func`` is no PrimFunc.
        TraceError
            If both name outputs, or an index is out of range.
        PassConfigError
            If a pass configuration is unknown or of the wrong type.
        """
        if not isinstance(func, T.PrimFunc):
            raise TraceTypeError(
                f"tilelang.compile takes a PrimFunc (from @T.prim_func), found "
                f"{type(func).__name__}; a function decorated with @tilelang.jit has its own "
                ".compile(...)"
            )
        attrs = func.attrs or {}
        wanted_configs = context.execution_backend.pass_configs()
        own_configs = _plain(attrs.get(_PASS_CONFIGS, {}))
        given_configs = {str(k): v for k, v in _mapping(pass_configs).items()}
        flags = (*map(str, attrs.get(_COMPILE_FLAGS, ())), *_flags(compile_flags))
        return cls(
            func=with_outputs(func, out_idx),
            context=context,
            pass_configs=normalize_pass_configs({**wanted_configs, **own_configs, **given_configs}),
            compile_flags=flags,
            verbose=env.get_default_verbose() if verbose is None else verbose,
        )

    @property
    def name(self) -> str:
        """The function's name."""
        return str((self.func.attrs or {}).get("global_symbol", "kernel"))

    @property
    def observed(self) -> bool:
        """Whether somebody wants to see the passes run, so that no cache may answer."""
        watching = any(pass_flag(self.pass_configs, key) for key in _OBSERVING)
        return watching or bool(env.pass_diff_modes() or env.lower_trace_modes())

    def key(self) -> str:
        """The cache key; see :func:`tilelang.cache.key.kernel_key`."""
        context = self.context
        adapter = find_adapter(context.execution_backend.name)
        return kernel_key(
            self.func,
            target=context.target,
            target_host=context.target_host,
            execution_backend=context.execution_backend.name,
            pass_configs=self.pass_configs,
            compile_flags=self.compile_flags,
            loader=adapter.fingerprint(context),
            with_spans=self._shows_lines(),
        )

    def _shows_lines(self) -> bool:
        """Whether source lines are part of the code, beyond what the program says itself."""
        if pass_flag(self.pass_configs, PassConfigKey.TL_EMIT_LINE_DIRECTIVES):
            return True
        shows_lines = self.context.module.shows_lines
        return shows_lines is not None and shows_lines(self.func)


def with_outputs(func: T.PrimFunc, out_idx: OutIdx) -> T.PrimFunc:
    """Mark parameters as outputs; the given function is unchanged.

    Parameters
    ----------
    func : tvm.tirx.PrimFunc
    out_idx : int, sequence of int or None
        Positions of the parameters that the compiled kernel allocates and returns, in the order it
        returns them; negative ones count from the end.

    Raises
    ------
    TraceError
        If the function returns ``T.empty`` tensors already, or an index is out of range, repeated,
        or names a parameter that is no tensor.
    """
    if out_idx is None:
        return func
    own = (func.attrs or {}).get(_OUT_IDX)
    if own is not None and len(own):
        raise TraceError(
            "Out index conflict: the function returns its T.empty tensors, so out_idx "
            f"(here {out_idx!r}) must not be given",
            func.span,
        )
    params = list(func.params)
    given = [out_idx] if isinstance(out_idx, int) else list(out_idx)
    found: list[int] = []
    for index in given:
        if not isinstance(index, int) or isinstance(index, bool):
            raise TraceTypeError(f"out_idx holds integers, found {index!r}", func.span)
        if not -len(params) <= index < len(params):
            names = ", ".join(p.name for p in params)
            raise TraceError(
                f"out_idx {index} is out of range: the function has {len(params)} parameters "
                f"({names})",
                func.span,
            )
        position = index % len(params)
        if position - len(params) in found:
            raise TraceError(f"out_idx {out_idx!r} names a parameter twice", func.span)
        if not T.is_buffer_var(params[position]):
            raise TraceError(
                f"out_idx {index} is parameter '{params[position].name}', which is no tensor",
                func.span,
            )
        found.append(position - len(params))
    return func.with_attr(_OUT_IDX, found) if found else func


def _plain(value: Any) -> Any:
    """An attribute value with Python's containers instead of tvm_ffi's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _mapping(value: Any) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        normalize_pass_configs(value)  # raises the error for this mistake
    found: Mapping[Any, Any] = value
    return found


def _flags(value: CompileFlags) -> tuple[str, ...]:
    if value is None:
        return ()
    flags = shlex.split(value) if isinstance(value, str) else list(value)
    for flag in flags:
        if not isinstance(flag, str):
            raise TraceTypeError(
                f"compile_flags is a string or a list of strings, found {type(flag).__name__} "
                f"{flag!r} in it"
            )
    return tuple(flags)
