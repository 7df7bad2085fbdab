"""Eager mode: the function is the kernel, a call compiles on first use and runs.

A call costs little because it does not bind its arguments here: :func:`make_call` writes a function
with the signature of the decorated one, whose body looks the native callable up by the sizes that
the kernel is compiled for, and calls it. Everything else, such as a size not seen before or a wrong
argument, takes the slow way through :meth:`EagerJIT._resolve`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal

import torch
from tvm.target import _ffi_api as _target_api

from tilelang.errors import ArgumentTypeError, ArgumentValueError
from tilelang.jit.binding import ArgumentBinder, Binding, token
from tilelang.jit.impl import Instance, JITImpl
from tilelang.jit.kernel import JITKernel, explain_failure
from tilelang.jit.options import JITOptions
from tilelang.language.eager import ConstSource, EagerFunction, EagerSignature

__all__ = ["EagerJIT"]

# A kernel may meet any number of sizes; the table of fast calls starts anew beyond this many.
_MAX_FAST_CALLS = 4096


class EagerJIT(JITImpl):
    """A function whose body is a kernel.

    Its tensors, pointers and scalars are arguments of each call; every other parameter is a
    compile-time value. Sizes declared with ``T.const`` are read from the tensors, or given by
    keyword. There is one kernel for each combination of compile-time values, sizes and target.

    The defaults that environment variables set count when a combination is first compiled.
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel and return its outputs; replaced by what :func:`make_call` writes."""
        return self._run(args, kwargs)

    def with_options(self, **changes: Any) -> EagerJIT:
        """The same function under other options."""
        return EagerJIT(self.func, self._changed(changes))

    def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the kernel for any arguments, and remember how if the fast way may serve it."""
        binding = self._binder.bind(args, kwargs)
        runtime = [binding.values[name] for name in self._function.runtime_names]
        kernel = self._kernel(self._instance(binding))
        if not torch.compiler.is_compiling():
            self._remember(binding, kernel)
        return kernel(*runtime)

    def _resolve(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Instance:
        return self._instance(self._binder.bind(args, kwargs, optional=True))

    def _instance(self, binding: Binding) -> Instance:
        static = {
            name: value
            for name, value in self._binder.flatten(binding).items()
            if name not in self._function.runtime_names and name not in binding.extras
        }
        static_key = self._static_key(binding)
        signature = self._signatures.get(static_key)
        if signature is None:
            signature = self._signatures[static_key] = self._function.signature(static)
            self._add_sources(signature)
        sizes = _sizes(self.func.__name__, signature, binding)
        device = _device_type(binding, self._function.runtime_names)
        return Instance(
            key=(static_key, tuple(sorted(sizes.items())), device, self.options.surroundings()),
            trace=lambda: self._function.trace(static, sizes),
            context=lambda: self.options.context(device),
        )

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


def _sizes(name: str, signature: EagerSignature, binding: Binding) -> dict[str, int]:
    """The values of the ``T.const`` sizes: from the tensors, or by keyword."""
    sizes: dict[str, int] = {}
    for const, value in binding.extras.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise ArgumentTypeError(
                f"{name}() got an unexpected keyword argument '{const}', or size '{const}' is no "
                f"integer: {value!r}"
            )
        sizes[const] = value
    for const, source in signature.consts.items():
        tensor = binding.values.get(source.argument)
        if tensor is None:
            if const not in sizes and source.argument in binding.values:
                raise ArgumentTypeError(
                    f"{name}(): argument '{source.argument}' is None, but it gives size '{const}'"
                )
            continue
        found = _size(name, signature.arguments[source.argument], source, tensor)
        if sizes.setdefault(const, found) != found:
            raise ArgumentValueError(
                f"{name}(): size '{const}' is {found} in {source.field}[{source.dim}] of argument "
                f"'{source.argument}', but the call says {const}={sizes[const]}"
            )
    return sizes


def _size(name: str, spec: Any, source: ConstSource, tensor: Any) -> int:
    """One size of a tensor, in elements of the declared dtype."""
    shape = getattr(tensor, "shape", None)
    if shape is None:
        raise ArgumentTypeError(
            f"{name}(): argument '{source.argument}' must be a tensor, "
            f"found {type(tensor).__name__}"
        )
    rank = len(spec.shape)
    if len(shape) != rank:
        raise ArgumentValueError(
            f"{name}(): argument '{source.argument}' has rank {len(shape)} {tuple(shape)}, "
            f"expected {rank}"
        )
    packed = max(1, 8 * tensor.dtype.itemsize // spec.dtype.bits) if spec.dtype.bits < 8 else 1
    if source.field == "shape":
        return int(shape[source.dim]) * (packed if source.dim == rank - 1 else 1)
    stride = tensor.stride(source.dim) if hasattr(tensor, "stride") else None
    if stride is None:
        stride = tensor.strides[source.dim] // tensor.itemsize
    return int(stride) * (packed if source.dim != rank - 1 else 1)


def _device_type(binding: Binding, names: tuple[str, ...]) -> str | None:
    for name in names:
        device = getattr(binding.values.get(name), "device", None)
        if isinstance(device, torch.device):
            return str(device.type)
    return None


def make_call(impl: EagerJIT) -> tuple[Callable[..., Any], Callable[..., Hashable]]:
    """Write ``__call__`` for a kernel, and the function that computes its key.

    For ``def add(A, B, block=128)`` whose sizes all come from ``A`` it reads::

        def add(self, A, B, block=<default>, **extra):
            if not extra and not is_compiling() and current_target(True) is None:
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
    by_device = options.target in (None, "auto")
    key = ", ".join(_key_terms(impl._sources, function, by_device)) or "()"
    quiet = "not _tl_extra and not _tl_compiling()"
    if by_device:
        quiet += " and _tl_target(True) is None"
    placed = "".join(f"{p.name}, " for p in named if p.kind is not p.KEYWORD_ONLY)
    keywords = "".join(f"{p.name}={p.name}, " for p in named if p.kind is p.KEYWORD_ONLY)
    text = f"""
def _tl_call(_tl_self, {declared}**_tl_extra):
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
