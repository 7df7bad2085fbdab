"""Running a program in the interpreter behind the face of a kernel (``TILELANG_INTERPRET=1``).

It is no execution backend: nothing is lowered, so no target backend declares it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tilelang.errors import UnsupportedError
from tilelang.jit.adapter.base import KernelAdapter, KernelBundle

if TYPE_CHECKING:
    from tvm import tirx as T

    from tilelang.engine.artifact import CompiledArtifact

__all__ = ["ADAPTER", "InterpreterAdapter"]


class InterpreterAdapter(KernelAdapter):
    """Calls the interpreter with the program itself."""

    name: ClassVar[str] = "interpreter"

    @classmethod
    def of(cls, program: T.PrimFunc) -> InterpreterAdapter:
        """The adapter of a program."""
        from tilelang.engine.host_plan import split_launches  # needs the front half of the compiler

        plan, _ = split_launches(program, "cpu")
        return cls(KernelBundle(plan, program.script(), runtime_module=program))

    @classmethod
    def build(cls, artifact: CompiledArtifact, compile_flags: Sequence[str]) -> KernelBundle:
        """Refused: the interpreter takes programs, not what they are lowered to."""
        raise UnsupportedError("the interpreter runs programs that are not lowered")

    def load(self, bundle: KernelBundle) -> Callable[..., Any]:
        """Make the program callable."""
        from tilelang.interpreter import as_kernel_function  # only where it is asked for

        return as_kernel_function(bundle.runtime_module)


ADAPTER = InterpreterAdapter
