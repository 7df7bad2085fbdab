"""The arguments, sizes and outputs of a function being traced."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.dtype import dtype as to_dtype
from tilelang.ir.span import user_span
from tilelang.language.eager.values import Missing
from tilelang.language.tensor import PointerSpec, TensorSpec, handle, ptr

__all__ = ["ArgumentSpec", "ScalarSpec", "Session", "SignatureKnown", "argument_spec"]


@dataclass(frozen=True)
class ScalarSpec:
    """A run-time scalar argument; ``var`` is the T.dynamic size it stands for, if any."""

    dtype: to_dtype
    var: ir.Var | None = None

    def declare(self, name: str, span: ir.Span | None = None) -> ir.Var:
        """The variable of this description called ``name``."""
        return T.Var(name, self.dtype.prim_type, span) if self.var is None else self.var


ArgumentSpec = TensorSpec | PointerSpec | ScalarSpec


class SignatureKnown(BaseException):
    """Stops a trace that only wants the declarations. Not an Exception: user code cannot catch "
    "it."""


def argument_spec(annotation: Any) -> ArgumentSpec | None:
    """The run-time argument that ``annotation`` describes, or None if it describes none."""
    if isinstance(annotation, TensorSpec | PointerSpec | ScalarSpec):
        return annotation
    if annotation is ptr or annotation is handle:
        return PointerSpec()
    if isinstance(annotation, ir.Var) and isinstance(annotation.ty, ir.PrimType):
        return ScalarSpec(to_dtype(annotation.ty), annotation)
    if isinstance(annotation, types.FunctionType):
        return argument_spec(annotation())
    if isinstance(annotation, str) or type(annotation).__module__ in ("torch", "numpy"):
        try:
            return ScalarSpec(to_dtype(annotation))
        except TraceTypeError:
            return None
    return None


class Session:
    """What the tracer keeps beside the statements.

    Parameters
    ----------
    function : str
        Name of the function, for messages.
    arguments : mapping
        The run-time parameters in order; the spec, or None if the body declares it.
    phase : {"signature", "trace"}
        In the first one the trace stops as soon as all arguments are declared.
    consts : mapping, optional
        Values of ``T.const`` sizes; None means that ``T.const`` is not available.
    namespace : mapping, optional
        The names around the definition of the function.
    """

    def __init__(
        self,
        function: str,
        arguments: Mapping[str, ArgumentSpec | None],
        phase: Literal["signature", "trace"] = "trace",
        consts: Mapping[str, int] | None = None,
        namespace: Mapping[str, Any] | None = None,
    ) -> None:
        self.namespace = namespace
        self.function = function
        self.phase = phase
        self.entered = False
        self.specs: dict[str, ArgumentSpec | None] = dict(arguments)
        self.consts = consts
        self.used_consts: set[str] = set()
        self.const_vars: dict[str, ir.Var] = {}
        self.outputs: list[ir.Var] = []
        self.return_span: ir.Span | None = None
        self.params: dict[str, Any] = {}
        for name, spec in arguments.items():
            if spec is None:
                self.params[name] = Missing(
                    f"argument '{name}' is used before it is declared; declare it first: "
                    f"{name}: T.Tensor((M, N), dtype)"
                )
            else:
                self.params[name] = spec.declare(name, user_span())

    def declare(self, name: str, annotation: Any, held: Any) -> Any:
        """``name: annotation`` in the body of the function."""
        spec = argument_spec(annotation)
        if name not in self.specs:
            if isinstance(spec, TensorSpec | PointerSpec):
                raise TraceError(
                    f"'{name}' is declared as an argument but is no parameter of "
                    f"'{self.function}'; add it to the parameters, or use T.empty for an output",
                    user_span(),
                )
            return held
        if self.specs[name] is not None:
            raise TraceError(f"argument '{name}' is declared twice", user_span())
        if spec is None:
            raise TraceTypeError(
                f"argument '{name}': {annotation!r} declares no run-time argument; expected "
                "T.Tensor, T.StridedTensor, T.ptr or a dtype",
                user_span(),
            )
        self.specs[name] = spec
        variable = self.params[name] = spec.declare(name, user_span())
        if self.phase == "signature" and all(s is not None for s in self.specs.values()):
            raise SignatureKnown
        return variable

    def reach_kernel(self) -> None:
        """The body of the launch begins."""
        if self.phase == "signature":
            raise SignatureKnown

    def const(self, name: str, dtype: to_dtype) -> Any:
        """The size ``name``: a variable while the signature is wanted, then a number."""
        if self.consts is None:
            raise TraceError(
                "T.const is only valid in a function decorated with @tilelang.jit; use T.dynamic "
                "for a size that is known when the kernel is called",
                user_span(),
            )
        if self.phase == "signature":
            return self.const_vars.setdefault(name, T.Var(name, dtype.prim_type, user_span()))
        if name not in self.consts:
            raise TraceError(
                f"T.const '{name}' stands in no shape or stride of an argument by itself, so its "
                f"value is unknown; use it as an extent, or call the kernel with {name}=...",
                user_span(),
            )
        self.used_consts.add(name)
        return self.consts[name]

    def add_output(self, spec: TensorSpec, name: str, span: ir.Span | None) -> ir.Var:
        """Declare an output tensor."""
        output = spec.declare(name, span)
        self.outputs.append(output)
        return output

    def replace_argument(self, param: Any, buffer: ir.Var) -> bool:
        """Put ``buffer`` in the place of the pointer argument ``param``; whether there is one."""
        if not isinstance(param, ir.Var) or not isinstance(param.ty, ir.PointerType):
            return False
        for name, held in self.params.items():
            if isinstance(held, ir.Var) and held.same_as(param):
                self.params[name] = buffer
                return True
        return False

    def finish(self, result: Any) -> list[ir.Var]:
        """The parameters of the function, outputs last in the order in which they are returned.

        Raises
        ------
        TraceError
            If an argument was never declared, or what is returned are not exactly the outputs.
        """
        undeclared = [name for name, held in self.params.items() if isinstance(held, Missing)]
        if undeclared:
            raise TraceError(
                f"parameters {', '.join(undeclared)} of '{self.function}' have no type; annotate "
                "them with T.Tensor(...) or a dtype, in the signature or in the body"
            )
        returned = (
            [] if result is None else list(result) if isinstance(result, tuple | list) else [result]
        )
        for value in returned:
            if not any(isinstance(value, ir.Var) and value.same_as(out) for out in self.outputs):
                raise TraceError(
                    f"'{self.function}' returns {_name_of(value)}, which is no output; only "
                    "tensors made by T.empty can be returned"
                )
        missing = [o.name for o in self.outputs if not any(o.same_as(value) for value in returned)]
        if missing or len(returned) != len(self.outputs):
            raise TraceError(
                f"'{self.function}' must return each of its outputs once; not returned or "
                f"returned twice: {', '.join(missing) or ', '.join(v.name for v in returned)}"
            )
        return [*self.params.values(), *returned]


def _name_of(value: Any) -> str:
    return f"'{value.name}'" if isinstance(value, ir.Var) else f"a {type(value).__name__}"
