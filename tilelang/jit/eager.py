"""Eager mode: the function is the kernel, a call compiles on first use and runs.

A call costs little because it does not bind its arguments here: :func:`make_call` writes a function
with the signature of the decorated one, whose body looks the native callable up by the sizes that
the kernel is compiled for, and calls it. Everything else, such as a size not seen before or a wrong
argument, takes the slow way through :meth:`EagerJIT._resolve`.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Literal

import torch
from tvm.target import _ffi_api as _target_api

from tilelang.backend.source_callback import watch_source_callbacks
from tilelang.jit.binding import ArgumentBinder, Binding, token
from tilelang.jit.impl import Instance, JITImpl
from tilelang.jit.kernel import JITKernel, explain_failure, refuse_inside_trace
from tilelang.jit.options import JITOptions
from tilelang.jit.sizes import in_elements, read_sizes
from tilelang.jit.torch_op import GraphCall, launch_in_graph
from tilelang.language.eager import ConstSource, EagerFunction, EagerSignature

__all__ = ["EagerJIT"]

# A kernel may meet any number of sizes; the table of fast calls starts anew beyond this many.
_MAX_FAST_CALLS = 4096


class EagerJIT(JITImpl):
    """A function whose body is a kernel.

    Its tensors, pointers and scalars are arguments of each call; every other parameter is a
    compile-time value. Sizes declared with ``T.const`` are read from the tensors, or given by
    keyword. There is one kernel for each combination of compile-time values, sizes and target.

    Defaults set by environment variables count when a combination is first compiled; a call that
    takes the fast way does not look at them again.
    """

    mode: Literal["eager"] = "eager"

    def __new__(cls, func: Callable[..., Any], options: JITOptions) -> EagerJIT:
        # Python looks ``__call__`` up on the class, so each kernel has one of its own.
        own = type(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__})
        return object.__new__(own)

    def __init__(self, func: Callable[..., Any], options: JITOptions) -> None:
        super().__init__(func, options)
        self._function = EagerFunction(func)
        self._binder = ArgumentBinder(func, not_in_key=self._function.runtime_names)
        self._signatures: dict[Hashable, EagerSignature] = {}
        self._sources: set[ConstSource] = set()
        self._fast_calls: dict[Hashable, Callable[..., Any]] = {}
        self._fast_key: Callable[..., Hashable] = lambda *args: None
        self._install_call()
        watch_source_callbacks(self._forget_fast_calls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel and return its outputs; replaced by what :func:`make_call` writes."""
        return self._run(args, kwargs)

    def with_options(self, **changes: Any) -> EagerJIT:
        """The same function under other options."""
        return EagerJIT(self.func, self._changed(changes))

    def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the kernel for any arguments, and remember how if the fast way may serve it."""
        refuse_inside_trace(self.func.__name__)
        binding = self._binder.bind(args, kwargs)
        runtime = [binding.values[name] for name in self._function.runtime_names]
        kernel = self._kernel(self._instance(binding))
        self._remember(binding, kernel)
        return kernel(*runtime)

    def _resolve(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Instance:
        return self._instance(self._binder.bind(args, kwargs, optional=True))

    def _instance(self, binding: Binding) -> Instance:
        values = binding.values
        sizes = read_sizes(self.func.__name__, self._signature(binding), values, binding.extras)
        device = _device_type(
            values[name] for name in self._function.runtime_names if name in values
        )
        return self._instance_of(binding, sizes, device)

    def _instance_of(
        self, binding: Binding, sizes: Mapping[str, int], device: str | None
    ) -> Instance:
        static = self._static(binding)
        return Instance(
            key=(
                self._static_key(binding),
                tuple(sorted(sizes.items())),
                device,
                self.options.surroundings(),
            ),
            trace=lambda: self._function.trace(static, sizes),
            context=lambda: self.options.context(device),
        )

    def _signature(self, binding: Binding) -> EagerSignature:
        """The declarations for the compile-time values of a call."""
        key = self._static_key(binding)
        signature = self._signatures.get(key)
        if signature is None:
            signature = self._signatures[key] = self._function.signature(self._static(binding))
            self._add_sources(signature)
        return signature

    def _static(self, binding: Binding) -> dict[str, Any]:
        apart = {*self._function.runtime_names, *binding.extras}
        flat = self._binder.flatten(binding)
        return {name: value for name, value in flat.items() if name not in apart}

    def _static_key(self, binding: Binding) -> Hashable:
        placed, named = binding.key
        return placed, tuple(pair for pair in named if pair[0] not in binding.extras)

    # -- the fast way -----------------------------------------------------------------------------
    def _add_sources(self, signature: EagerSignature) -> None:
        new = set(signature.consts.values()) - self._sources
        if new:
            self._sources |= new
            self._fast_calls.clear()
            self._install_call()

    def _install_call(self) -> None:
        call, self._fast_key = make_call(self)
        type(self).__call__ = call  # type: ignore[method-assign]  # the class is this object's own

    def _forget_fast_calls(self) -> None:
        self._fast_calls.clear()

    def _remember(self, binding: Binding, kernel: JITKernel) -> None:
        """Let the next call like this one take the fast way, if it can be told from others."""
        values = dict(binding.values)
        static = [values[name] for name in self._function.static_names]
        if binding.extras or not all(_exact(value) for value in static):
            return
        try:
            key = self._fast_key(**values)
        except (AttributeError, IndexError, TypeError):
            return
        if len(self._fast_calls) >= _MAX_FAST_CALLS:
            self._fast_calls.clear()
        self._fast_calls[key] = kernel.torch_function


def _exact(value: Any) -> bool:
    """Whether type and equality tell ``value`` from every other; not so for 0.0 and (1,)."""
    try:
        return token(value) == (type(value), value) or (isinstance(value, float) and value != 0)
    except TypeError:
        return False


def _device_type(values: Iterable[Any]) -> str | None:
    """The torch device type of the first tensor."""
    for value in values:
        device = getattr(value, "device", None)
        if isinstance(device, torch.device):
            return str(device.type)
    return None


def make_call(impl: EagerJIT) -> tuple[Callable[..., Any], Callable[..., Hashable]]:
    """Write ``__call__`` for a kernel, and the function that computes its key.

    For ``def add(A, B, block=128)`` whose sizes all come from ``A`` it reads::

        def add(self, A, B, block=<default>, **extra):
            if is_compiling():
                return call_in_graph((A, B), (block,), extra)
            if not extra and current_target(True) is None:
                try:
                    run = fast_calls[A.shape, A.get_device(), block, block.__class__]
                except (KeyError, AttributeError, IndexError, TypeError):
                    pass
                else:
                    try:
                        return run(A, B)
                    except RuntimeError as error:
                        raise explain(error, "add", ("A", "B"), (A, B)) from None
            return slow(self, (A, B, block), extra)
    """
    function, options = impl._function, impl.options
    parameters = list(function.python_signature.parameters.values())
    named = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    declared, defaults = _declared(named)
    runtime = "".join(f"{name}, " for name in function.runtime_names)
    static = "".join(f"{name}, " for name in function.static_names)
    by_device = options.target in (None, "auto")
    key = ", ".join(_key_terms(impl._sources, function, by_device)) or "()"
    quiet = "not _tl_extra"
    if by_device:
        quiet += " and _tl_target(True) is None"
    placed = "".join(f"{p.name}, " for p in named if p.kind is not p.KEYWORD_ONLY)
    keywords = "".join(f"{p.name}={p.name}, " for p in named if p.kind is p.KEYWORD_ONLY)
    text = f"""
def _tl_call(_tl_self, {declared}**_tl_extra):
    if _tl_compiling():
        return _tl_in_graph(({runtime}), ({static}), _tl_extra)
    if {quiet}:
        try:
            _tl_run = _tl_fast[{key}]
        except (KeyError, AttributeError, IndexError, TypeError):
            pass
        else:
            try:
                return _tl_run({runtime})
            except RuntimeError as _tl_error:
                raise _tl_explain(_tl_error, _tl_name, _tl_names, ({runtime})) from None
    return _tl_slow(_tl_self, ({placed}), dict({keywords}**_tl_extra))

def _tl_key({declared}**_tl_extra):
    return {key}
"""
    scope: dict[str, Any] = {
        "_tl_fast": impl._fast_calls,
        "_tl_slow": EagerJIT._run,
        "_tl_in_graph": make_graph_call(impl),
        "_tl_compiling": torch.compiler.is_compiling,
        "_tl_target": _target_api.TargetCurrent,
        "_tl_defaults": defaults,
        "_tl_explain": explain_failure,
        "_tl_name": impl.func.__name__,
        "_tl_names": function.runtime_names,
    }
    exec(compile(text, f"<call of {impl.func.__qualname__}>", "exec"), scope)
    call = scope["_tl_call"]
    call.__name__, call.__qualname__ = impl.func.__name__, impl.func.__qualname__
    return call, scope["_tl_key"]


def _declared(parameters: list[inspect.Parameter]) -> tuple[str, dict[str, Any]]:
    """The parameters as source text, and their defaults by name."""
    text, defaults, keyword_only = "", {}, False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            text += "*, "
            keyword_only = True
        text += parameter.name
        if parameter.default is not parameter.empty:
            defaults[parameter.name] = parameter.default
            text += f"=_tl_defaults[{parameter.name!r}]"
        text += ", "
    return text, defaults


def _key_terms(sources: set[ConstSource], function: EagerFunction, by_device: bool) -> list[str]:
    """What tells the kernels of one function apart, as source text."""
    terms: list[str] = []
    for name in function.runtime_names:
        found = [source for source in sources if source.argument == name]
        if any(source.field == "shape" for source in found):
            terms.append(f"{name}.shape")
        if any(source.field == "strides" for source in found):
            terms.append(f"{name}.stride()")
    if by_device and function.runtime_names:
        terms.append(f"{function.runtime_names[0]}.get_device()")
    for name in function.static_names:
        terms += [name, f"{name}.__class__"]
    return terms


def make_graph_call(impl: EagerJIT) -> Callable[..., Any]:
    """The call while torch captures a graph, written so that Dynamo can follow it.

    What Dynamo must not follow, finding the kernel, are functions whose results it takes for
    constants; ``operator.index`` makes it guard the sizes that the kernel is compiled for, and only
    those.
    """
    names = impl._function.runtime_names

    def bind(static: tuple[Any, ...], extra: tuple[tuple[str, Any], ...]) -> Binding:
        keywords = {**dict(zip(impl._function.static_names, static, strict=True)), **dict(extra)}
        return impl._binder.bind((), keywords, optional=True)

    @torch._dynamo.assume_constant_result
    def sources(static: Any, extra: Any) -> tuple[tuple[int, str, int], ...]:
        found = impl._signature(bind(static, extra)).consts.values()
        return tuple((names.index(s.argument), s.field, s.dim) for s in found)

    @torch._dynamo.assume_constant_result
    def find(static: Any, extra: Any, numbers: Any, device: str | None) -> tuple[Any, ...]:
        binding = bind(static, extra)
        signature = impl._signature(binding)
        sizes = dict(binding.extras)
        for (const, source), (number, itemsize) in zip(
            signature.consts.items(), numbers, strict=True
        ):
            spec = signature.arguments[source.argument]
            sizes[const] = in_elements(number, itemsize, spec, source)
        return tuple(impl._kernel(impl._instance_of(binding, sizes, device)).graph_call)

    def call(runtime: tuple[Any, ...], static: tuple[Any, ...], extra: Mapping[str, Any]) -> Any:
        extras = tuple(extra.items())
        numbers, device = [], None
        for position, field, dim in sources(static, extras):
            tensor = runtime[position]
            number = tensor.shape[dim] if field == "shape" else tensor.stride(dim)
            numbers.append((operator.index(number), tensor.element_size()))
        for value in runtime:
            if device is None and isinstance(value, torch.Tensor):
                device = value.device.type
        found = GraphCall(*find(static, extras, tuple(numbers), device))
        return launch_in_graph(found, runtime)

    return call
