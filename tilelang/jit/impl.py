"""What ``tilelang.jit`` makes of a function: the part that every mode shares."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

from tvm import tirx as T

from tilelang.backend import BackendContext
from tilelang.errors import TraceTypeError
from tilelang.jit.compiler import compile_request, run_parallel
from tilelang.jit.kernel import JITKernel
from tilelang.jit.options import JITOptions
from tilelang.jit.request import CompileRequest
from tilelang.language.eager.source import function_span

__all__ = ["Instance", "JITImpl", "checked_program"]

_Self = TypeVar("_Self", bound="JITImpl")


@dataclass(frozen=True)
class Instance:
    """One kernel of a decorated function: what tells it from the others, and how to get it.

    ``trace`` makes the program, ``context`` chooses the backends; neither runs for a kernel that
    is known already.
    """

    key: Hashable
    trace: Callable[[], T.PrimFunc]
    context: Callable[[], BackendContext]


class JITImpl(ABC):
    """A function decorated with :func:`tilelang.jit`.

    Attributes
    ----------
    func : callable
        The decorated function.
    options : JITOptions
        The keywords of the decorator, also readable one by one: ``out_idx``, ``target``,
        ``target_host``, ``execution_backend``, ``verbose``, ``pass_configs``, ``debug_root_path``,
        ``compile_flags``.
    mode : {"lazy", "eager"}
        Whether a call returns a kernel or runs one.
    """

    mode: Literal["lazy", "eager"]

    def __init__(self, func: Callable[..., Any], options: JITOptions) -> None:
        self._kernels: dict[Hashable, JITKernel] = {}
        self.func = func
        self.options = options
        functools.update_wrapper(self, func, updated=())

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Lazy mode: return the kernel. Eager mode: run it and return its outputs."""

    @abstractmethod
    def _resolve(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Instance:
        """Find out which kernel a call means; raises ``TypeError`` as a Python call would."""

    def get_tir(self, *args: Any, **kwargs: Any) -> T.PrimFunc:
        """The traced program for these arguments; nothing is compiled."""
        return self._resolve(args, kwargs).trace()

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The kernel for these arguments; nothing is run."""
        return self._kernel(self._resolve(args, kwargs))

    def par_compile(
        self,
        configs: Iterable[Any],
        num_workers: int | None = None,
        ignore_error: bool = False,
    ) -> list[JITKernel | None]:
        """Compile several configurations in a thread pool.

        Parameters
        ----------
        configs : iterable of dict, tuple or single value
            Arguments of each configuration: keywords, positional, or the only one.
        num_workers : int, optional
            Threads; by default one for each configuration, at most one for each usable core.
        ignore_error : bool
            Log a configuration that fails and return None in its place, instead of raising.

        Returns
        -------
        list of JITKernel
            In the order of ``configs``.
        """
        # Tracing is Python and would hold the lock in threads: it happens here, under the
        # caller's contexts.
        jobs = [self._compile_job(*_split(config), ignore_error) for config in configs]
        return run_parallel(
            jobs, num_workers=num_workers, ignore_error=ignore_error, title=self.func.__name__
        )

    def _compile_job(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], ignore_error: bool
    ) -> Callable[[], JITKernel]:
        try:
            instance = self._resolve(args, kwargs)
            if (kernel := self._kernels.get(instance.key)) is not None:
                return lambda: kernel
            request = self.options.request(instance.trace(), instance.context())
        except Exception as error:
            if not ignore_error:
                raise
            return functools.partial(_raise, error)
        return lambda: self._kernels.setdefault(instance.key, self._finish(request))

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """Text of the generated device code for these arguments."""
        return self.compile(*args, **kwargs).get_kernel_source()

    def is_lazy_mode(self) -> bool:
        """Whether a call returns a kernel instead of running it."""
        return self.mode == "lazy"

    def with_options(self: _Self, **changes: Any) -> _Self:
        """The same function under other options; this object is unchanged.

        Example
        -------
        >>> fast = kernel.with_options(pass_configs={"tl.enable_fast_math": True})
        """
        return type(self)(self.func, self._changed(changes))

    def _changed(self, changes: Mapping[str, Any]) -> JITOptions:
        unknown = sorted(set(changes) - set(JITOptions.__dataclass_fields__))
        if unknown:
            raise TypeError(f"tilelang.jit has no option {', '.join(unknown)}")
        return dataclasses.replace(self.options, **changes)

    @property
    def signature(self) -> inspect.Signature:
        """Signature of the decorated function."""
        return inspect.signature(self.func)

    @property
    def func_source(self) -> str:
        """Source text of the decorated function."""
        return inspect.getsource(self.func)

    def __getattr__(self, name: str) -> Any:
        options = self.__dict__.get("options")
        if options is not None and name in options.__dataclass_fields__:
            return getattr(options, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<tilelang.jit {self.mode} function {self.func.__qualname__}>"

    def _kernel(self, instance: Instance) -> JITKernel:
        kernel = self._kernels.get(instance.key)
        if kernel is None:
            request = self.options.request(instance.trace(), instance.context())
            kernel = self._kernels.setdefault(instance.key, self._finish(request))
        return kernel

    def _finish(self, request: CompileRequest) -> JITKernel:
        kernel = compile_request(request)
        if self.options.debug_root_path is not None:
            _write_debug_files(Path(self.options.debug_root_path), kernel)
        return kernel


def _split(config: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Positional and keyword arguments of one configuration of :meth:`JITImpl.par_compile`."""
    if isinstance(config, Mapping):
        return (), config
    return (tuple(config), {}) if isinstance(config, (tuple, list)) else ((config,), {})


def _raise(error: Exception) -> NoReturn:
    raise error


def _write_debug_files(root: Path, kernel: JITKernel) -> None:
    """Leave the program and the generated code where the user asked for them."""
    root.mkdir(parents=True, exist_ok=True)
    (root / f"{kernel.name}.py").write_text(kernel.prim_func.script(), encoding="utf-8")
    kernel.export_sources(kernel_path=root / f"{kernel.name}.source")


def checked_program(value: Any, func: Callable[..., Any]) -> T.PrimFunc:
    """What a lazy function returned, if it is a program."""
    if not isinstance(value, T.PrimFunc):
        found = "nothing" if value is None else type(value).__name__
        raise TraceTypeError(
            f"{func.__qualname__} is decorated with @tilelang.jit and returned {found}; a lazy "
            "function returns its @T.prim_func (return main), an eager one declares tensors "
            "(A: T.Tensor(...)) and opens T.Kernel itself",
            function_span(func),
        )
    return value
