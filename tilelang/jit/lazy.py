"""Lazy mode: the function is a factory, a call returns a kernel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal

from tvm import tirx as T

from tilelang.jit.binding import ArgumentBinder, call_form
from tilelang.jit.impl import Instance, JITImpl, checked_program
from tilelang.jit.kernel import JITKernel
from tilelang.jit.options import JITOptions

__all__ = ["LazyJIT", "ProgramJIT"]


class LazyJIT(JITImpl):
    """A function that returns a ``@T.prim_func``; its arguments are compile-time values.

    Kernels are kept by the values of the arguments, however the call spells them, and by the
    target the surroundings name when the decorator names none.
    """

    mode: Literal["lazy"] = "lazy"

    def __init__(self, func: Callable[..., Any], options: JITOptions) -> None:
        super().__init__(func, options)
        self._binder = ArgumentBinder(func)
        self._forms: dict[Hashable, JITKernel] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The kernel for these arguments; equal arguments give the same kernel object."""
        form = call_form(args, kwargs), self.options.surroundings()
        kernel = self._forms.get(form)
        if kernel is None:
            kernel = self._forms[form] = self.compile(*args, **kwargs)
        return kernel

    def _resolve(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Instance:
        binding = self._binder.bind(args, kwargs)
        return Instance(
            key=(binding.key, self.options.surroundings()),
            trace=lambda: checked_program(binding.call(self.func), self.func),
            context=self.options.context,
        )


class ProgramJIT(JITImpl):
    """A ready program under ``@tilelang.jit``.

    Called without arguments it returns the kernel, as a factory without parameters would; called
    with the program's arguments it runs it.
    """

    mode: Literal["lazy"] = "lazy"

    def __init__(self, func: T.PrimFunc, options: JITOptions) -> None:
        self.program = func
        super().__init__(getattr(func, "orig_func", None) or _factory_of(func), options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The kernel, or with arguments what it returns for them."""
        kernel = self.compile()
        return kernel(*args, **kwargs) if args or kwargs else kernel

    def with_options(self, **changes: Any) -> ProgramJIT:
        """The same program under other options."""
        return ProgramJIT(self.program, self._changed(changes))

    def _resolve(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Instance:
        if args or kwargs:
            raise TypeError(
                f"{self.func.__name__} is a ready program and has no compile-time parameters"
            )
        return Instance(self.options.surroundings(), lambda: self.program, self.options.context)


def _factory_of(program: T.PrimFunc) -> Callable[[], T.PrimFunc]:
    """A function that stands for a program made without one."""

    def factory() -> T.PrimFunc:
        return program

    factory.__name__ = factory.__qualname__ = str(program.attrs.get("global_symbol", "kernel"))
    return factory
