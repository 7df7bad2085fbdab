"""A compiled kernel."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from tvm import tirx as T
from tvm.target import Target

from tilelang.backend import BackendContext, ExecutionBackendSpec
from tilelang.engine.launch_plan import LaunchPlan, Param
from tilelang.engine.param import KernelParam
from tilelang.errors import ArgumentTypeError, TraceError, UnsupportedError
from tilelang.ir.builder import current_or_none
from tilelang.ir.span import user_span
from tilelang.jit.adapter.base import KernelAdapter
from tilelang.jit.diagnostics import Phases
from tilelang.jit.kernel_call import KernelCall, show_call
from tilelang.jit.report import kernel_report
from tilelang.jit.request import CompileRequest
from tilelang.jit.torch_op import launch_in_graph, publish
from tilelang.transform import PassContext

if TYPE_CHECKING:
    from tilelang.profiler import Profiler

__all__ = ["JITKernel", "explain_failure", "refuse_inside_trace"]

_is_compiling = torch.compiler.is_compiling

Which = Literal["kernel", "host", "both"]


def refuse_inside_trace(name: str) -> None:
    """Refuse to run kernel ``name`` while another one is traced.

    Raises
    ------
    TraceError
        Inside a trace.
    """
    if current_or_none() is not None:
        raise TraceError(
            f"kernel '{name}' is run inside a kernel that is being traced; kernels are run from "
            "Python. To use its code there, make it a @T.macro",
            user_span(),
        )


def explain_failure(
    error: RuntimeError, name: str, inputs: Sequence[str], args: Sequence[Any]
) -> Exception:
    """The error to raise for a call that failed before the launcher could check its arguments.

    Torch refuses to hand some tensors over, with a message that names no argument.
    """
    for position, (parameter, arg) in enumerate(zip(inputs, args, strict=False)):
        if not isinstance(arg, torch.Tensor):
            continue
        if arg.is_meta or arg.is_quantized or arg.layout is not torch.strided:
            kind = "quantized" if arg.is_quantized else f"layout {arg.layout}"
            return ArgumentTypeError(
                f"{name}: argument '{parameter}' (position {position}): expected a dense tensor in "
                f"memory, got {kind} on device {arg.device}"
            )
    return error


class JITKernel(KernelCall):
    """A compiled kernel; calling it launches it. Made by :func:`tilelang.compile`.

    The arguments are the parameters of the program without its outputs, in order or by name; a
    scalar with a default may be left out. Outputs are allocated, and returned: one as a tensor,
    several as a list. Wrong arguments raise ``ArgumentTypeError`` or ``ArgumentValueError`` before
    anything is written.

    Attributes
    ----------
    prim_func : tvm.tirx.PrimFunc
        The program.
    adapter : KernelAdapter
        What loaded it; ``adapter.func`` (also ``torch_function``) is the native callable behind
        ``__call__``, for callers that want to save its 0.1 µs.
    defaults : mapping
        Values of the scalar arguments that a call may leave out, by name.
    artifact : CompiledArtifact or None
        The lowering result; None for a kernel that came from the cache.
    from_cache : bool
        Whether it was read from the disk cache.
    latency, config, ref_latency
        What tuning found, see :meth:`update_tuner_result`.

    Examples
    --------
    >>> kernel = tilelang.compile(program, out_idx=-1)
    >>> c = kernel(a, b)
    >>> print(kernel.get_kernel_source())
    """

    __slots__ = (
        "__weakref__",
        "adapter",
        "artifact",
        "config",
        "defaults",
        "from_cache",
        "graph_call",
        "inputs",
        "latency",
        "phases",
        "plan",
        "ref_latency",
        "request",
    )

    def __init__(
        self,
        request: CompileRequest,
        adapter: KernelAdapter,
        *,
        key: str | None = None,
        phases: Phases | None = None,
        artifact: Any = None,
        from_cache: bool = False,
    ) -> None:
        self.request = request
        self.adapter = adapter
        self.artifact = artifact
        self.from_cache = from_cache
        self.phases: Mapping[str, float] = phases.milliseconds if phases else {}
        self.plan: LaunchPlan = adapter.bundle.plan
        self.inputs: tuple[Param, ...] = self.plan.inputs()
        attributes = request.func.attrs or {}
        self.defaults = {
            str(name): value for name, value in attributes.get("tilelang_defaults", {}).items()
        }
        self.latency: float | None = None
        self.config: Mapping[str, Any] | None = None
        self.ref_latency: float | None = None
        self._launch = adapter.func
        # Kernels without a content key still need a name that no other process uses.
        self.graph_call = publish(key or uuid.uuid4().hex, self)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Launch the kernel; see the class."""
        if kwargs:
            args = self._positional(args, kwargs)
        if _is_compiling():
            if self.defaults and len(args) < len(self.inputs):
                args = self._positional(args, {})
            return launch_in_graph(self.graph_call, args)
        try:
            return self._launch(*args)
        except (TypeError, RuntimeError) as error:
            failure = error
        return self._recover(failure, args)

    def _recover(self, error: Exception, args: Sequence[Any]) -> Any:
        """Call again with the defaults of arguments left out, or raise what explains ``error``."""
        if isinstance(error, RuntimeError):
            names = [param.name for param in self.inputs]
            raise explain_failure(error, self.plan.name, names, args) from None
        if isinstance(error, ArgumentTypeError):
            refuse_inside_trace(self.plan.name)
            # Only here, so that a complete call need not count its arguments.
            if self.defaults and len(args) < len(self.inputs):
                return self(*self._positional(tuple(args), {}))
        raise error

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Put keyword arguments in their places, with the errors of a Python call."""
        names = [param.name for param in self.inputs]
        signature = f"{self.plan.name}({', '.join(names)})"
        if len(args) > len(names):
            raise ArgumentTypeError(
                f"{signature} takes {len(names)} arguments, found {len(args)} without a name"
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise ArgumentTypeError(f"{signature} got an unexpected keyword argument '{name}'")
            if name in given:
                raise ArgumentTypeError(f"{signature} got multiple values for argument '{name}'")
            given[name] = value
        given = {**self.defaults, **given}
        missing = [name for name in names if name not in given]
        if missing:
            raise ArgumentTypeError(f"{signature} is missing {', '.join(missing)}")
        return tuple(given[name] for name in names)

    # -- what it is -----------------------------------------------------------------------------
    @property
    def torch_function(self) -> Callable[..., Any]:
        """The native callable behind ``__call__``."""
        return self._launch

    @property
    def prim_func(self) -> T.PrimFunc:
        """The program."""
        return self.request.func

    @property
    def name(self) -> str:
        """Name of the program."""
        return self.request.name

    @property
    def params(self) -> list[KernelParam]:
        """All parameters, outputs included, in order."""
        return [KernelParam.of(param) for param in self.prim_func.params]

    @property
    def out_idx(self) -> list[int]:
        """Positions of the outputs among :attr:`params`, in the order they are returned."""
        return list(self.plan.returns)

    @property
    def backend_context(self) -> BackendContext:
        """The resolved targets and backends."""
        return self.request.context

    @property
    def backend(self) -> str:
        """Name of the target backend."""
        return self.request.context.name

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return self.request.context.target

    @property
    def target_host(self) -> Target:
        """The host target."""
        return self.request.context.target_host

    @property
    def execution_backend_spec(self) -> ExecutionBackendSpec:
        """The execution backend, as its manifest declares it."""
        return self.request.context.execution_backend

    @property
    def execution_backend(self) -> str:
        """Name of the execution backend."""
        return self.request.context.execution_backend.name

    @property
    def pass_configs(self) -> Mapping[str, Any]:
        """The pass configuration it was compiled with."""
        return self.request.pass_configs

    @property
    def compile_flags(self) -> tuple[str, ...]:
        """The compiler flags it was compiled with."""
        return self.request.compile_flags

    @property
    def verbose(self) -> bool:
        """Whether its compile was verbose."""
        return self.request.verbose

    # -- source ---------------------------------------------------------------------------------
    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """Text of the generated device code; with the host code unless ``kernel_only``."""
        return self.adapter.get_kernel_source(kernel_only)

    def get_host_source(self) -> str:
        """Text of the generated host code; empty where the launcher works from data."""
        return self.adapter.get_host_source()

    @property
    def kernel_source(self) -> str:
        """Text of the generated device code."""
        return self.get_kernel_source()

    @property
    def host_source(self) -> str:
        """Text of the generated host code."""
        return self.get_host_source()

    def show_source(self, which: Which = "kernel") -> None:
        """Print the device code, the host code or both."""
        print(self._source(which))  # noqa: T201  (what it is for)

    def print_source_code(self, which: Which = "kernel", file: str | Path | None = None) -> None:
        """Print the source, or write it to ``file``. An older spelling of :meth:`show_source`."""
        if file is None:
            self.show_source(which)
        else:
            Path(file).write_text(self._source(which), encoding="utf-8")

    def export_sources(
        self, kernel_path: str | Path | None = None, host_path: str | Path | None = None
    ) -> None:
        """Write the device code, the host code or both to files."""
        for path, text in ((kernel_path, self.kernel_source), (host_path, self.host_source)):
            if path is not None:
                Path(path).write_text(text, encoding="utf-8")

    def _source(self, which: Which) -> str:
        if which == "kernel":
            return self.kernel_source
        if which == "host":
            return self.host_source
        if which == "both":
            return self.get_kernel_source(kernel_only=False)
        raise ValueError(f"which is 'kernel', 'host' or 'both', found {which!r}")

    def show_ptx(self) -> None:
        """Print the PTX of a CUDA kernel."""
        print(self._disassembly("ptx"))  # noqa: T201

    def export_ptx(self, path: str | Path) -> None:
        """Write the PTX of a CUDA kernel to a file."""
        Path(path).write_text(self._disassembly("ptx"), encoding="utf-8")

    def show_sass(self) -> None:
        """Print the machine code of a CUDA kernel."""
        print(self._disassembly("sass"))  # noqa: T201

    def export_sass(self, path: str | Path) -> None:
        """Write the machine code of a CUDA kernel to a file."""
        Path(path).write_text(self._disassembly("sass"), encoding="utf-8")

    def _disassembly(self, form: str) -> str:
        text = self.adapter.disassemble(form)
        compiler = self.request.context.device_compiler
        if text is None and compiler is not None and compiler.disassemble is not None:
            binaries = self.adapter.bundle.binaries
            with PassContext(self.pass_configs):
                text = compiler.disassemble(
                    form, self.kernel_source, binaries, self.target, self.compile_flags
                )
        if text is None:
            raise UnsupportedError.on_backend(form.upper(), self.backend)
        return text

    def export_library(self, kernel_file: str | Path) -> None:
        """Write the compiled code as a shared library.

        Raises
        ------
        UnsupportedError
            If the execution backend has no such form.
        """
        if not self.adapter.export_library(Path(kernel_file)):
            what = f"export_library with execution backend '{self.execution_backend}'"
            raise UnsupportedError.on_backend(what, self.backend)

    # -- resources ------------------------------------------------------------------------------
    @property
    def resource_usage(self) -> Mapping[str, Any]:
        """What the device compiler reports about the kernel: registers, spills, threads."""
        usage = self.adapter.resource_usage()
        compiler = self.request.context.device_compiler
        if usage is None and compiler is not None and compiler.resource_usage is not None:
            usage = compiler.resource_usage(self.adapter.bundle.binaries)
        if usage is None:
            raise UnsupportedError.on_backend("resource usage", self.backend)
        return usage

    @property
    def n_regs(self) -> int:
        """Registers per thread."""
        return int(self.resource_usage["n_regs"])

    @property
    def n_spills(self) -> int:
        """Registers spilled per thread."""
        return int(self.resource_usage["n_spills"])

    @property
    def n_max_threads(self) -> int:
        """Largest block the kernel can be launched with."""
        return int(self.resource_usage["n_max_threads"])

    def report(self) -> str:
        """How the kernel came about, as text.

        Targets, origin and milliseconds of each phase, then of every launch what the device
        compiler says it takes (registers, spills, shared memory), how many blocks fit on a
        multiprocessor, and why something fell off the fast path.
        """
        return kernel_report(self)

    # -- running --------------------------------------------------------------------------------
    def get_profiler(self, tensor_supply_type: Any = None) -> Profiler:
        """A profiler that makes inputs for this kernel, times it and compares its results.

        Parameters
        ----------
        tensor_supply_type : tilelang.TensorSupplyType, optional
            How inputs are filled; ``Auto`` by default.
        """
        from tilelang.profiler import Profiler, TensorSupplyType  # most programs never profile

        supply = TensorSupplyType.Auto if tensor_supply_type is None else tensor_supply_type
        return Profiler(self.params, self.out_idx, supply).with_default_adapter(self.adapter)

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """Run the kernel, or ``func``, once on generated inputs."""
        return self.get_profiler().run_once(func)

    def update_tuner_result(
        self, latency: float, config: Mapping[str, Any], ref_latency: float | None
    ) -> JITKernel:
        """Remember what tuning found; returns the kernel."""
        self.latency, self.config, self.ref_latency = latency, config, ref_latency
        return self

    def get_tuner_result(self) -> dict[str, Any]:
        """What tuning found: ``latency`` and ``ref_latency`` in ms, and ``config``."""
        if self.latency is None:
            raise ValueError(f"kernel '{self.name}' has not been tuned")
        return {
            "latency": self.latency,
            "config": self.config,
            "ref_latency": self.ref_latency,
        }

    def __repr__(self) -> str:
        inputs = ", ".join(param.name for param in self.inputs)
        return f"<JITKernel {self.plan.name}({inputs}) on {self.backend}>"


show_call(JITKernel, JITKernel._call)
