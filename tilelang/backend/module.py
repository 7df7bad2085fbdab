"""The manifest of a target backend, and every rule a manifest must satisfy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.device_codegen import DeviceCodegen
from tilelang.backend.execution_backend import ExecutionBackendSpec, canonical_execution_backend
from tilelang.backend.host_codegen import HostCodegen, HostCodegenHook
from tilelang.backend.pass_pipeline.pipeline import PassPipeline
from tilelang.backend.target import target_kind
from tilelang.errors import BackendError

__all__ = ["BackendModule"]


def _duplicates(names: Iterable[str]) -> list[str]:
    names = list(names)
    return sorted({name for name in names if names.count(name) > 1})


@dataclass(frozen=True)
class BackendModule:
    """A vertical slice of the compiler for some target kinds, as one immutable record.

    Parameters
    ----------
    name : str
        Unique name of the backend.
    target_kinds : tuple of str
        The kinds it compiles for.
    pipelines : mapping
        One :class:`PassPipeline` per kind, named as the kind.
    device_codegens : mapping
        One :class:`DeviceCodegen` per kind.
    execution_backends : tuple of ExecutionBackendSpec
        In the order ``auto`` tries them.
    supports_target : callable, optional
        Narrows the kinds; required when another backend shares one.
    host_codegens : mapping
        Host kind to :class:`HostCodegen`; required if an execution backend wants host code.
    host_codegen_hooks : mapping
        Device kind to the hooks applied to host IR before its codegen.
    callbacks : mapping
        Functions published in tvm-ffi's registry while the backend is registered.
    device_type : str
        The ``torch.device`` type of the tensors its kernels take.
    shows_lines : callable, optional
        Tells of a program whether its code holds source lines beside those of assertions and
        prints, so that the code changes when the program moves in its file.

    Raises
    ------
    BackendError
        A rule is broken; the message says which and by what.
    """

    name: str
    target_kinds: tuple[str, ...]
    pipelines: Mapping[str, PassPipeline]
    device_codegens: Mapping[str, DeviceCodegen]
    execution_backends: tuple[ExecutionBackendSpec, ...]
    supports_target: Callable[[Target], bool] | None = None
    host_codegens: Mapping[str, HostCodegen] = field(default_factory=dict)
    host_codegen_hooks: Mapping[str, tuple[HostCodegenHook, ...]] = field(default_factory=dict)
    callbacks: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    device_type: str = "cpu"
    shows_lines: Callable[[Any], bool] | None = None

    def __post_init__(self) -> None:
        freeze = object.__setattr__
        freeze(self, "target_kinds", tuple(self.target_kinds))
        freeze(self, "execution_backends", tuple(self.execution_backends))
        hooks = {kind: tuple(hooks) for kind, hooks in self.host_codegen_hooks.items()}
        freeze(self, "host_codegen_hooks", MappingProxyType(hooks))
        for name in ("pipelines", "device_codegens", "host_codegens", "callbacks"):
            freeze(self, name, MappingProxyType(dict(getattr(self, name))))
        self._check_kinds()
        self._check_execution_backends()
        self._check_host_codegen()

    # Two manifests are equal when all fields are; mappings have no hash, the name is enough.
    def __hash__(self) -> int:
        return hash(self.name)

    def _fail(self, message: str) -> None:
        raise BackendError(f"backend '{self.name}': {message}")

    def _check_kinds(self) -> None:
        if not self.name:
            raise BackendError("a backend needs a name")
        if not self.device_type:
            self._fail("device_type is empty; name the torch.device type of its tensors")
        if not self.target_kinds or not all(self.target_kinds):
            self._fail("target_kinds must name at least one kind, none of them empty")
        if repeated := _duplicates(self.target_kinds):
            self._fail(f"target kinds must be unique; given twice: {', '.join(repeated)}")
        for what, table in (
            ("pipelines", self.pipelines),
            ("device_codegens", self.device_codegens),
        ):
            if set(table) != set(self.target_kinds):
                self._fail(
                    f"{what} must have exactly one entry per target kind: "
                    f"kinds {sorted(self.target_kinds)}, entries {sorted(table)}"
                )
        for kind, pipeline in self.pipelines.items():
            if pipeline.name != kind:
                self._fail(f"the pipeline of kind '{kind}' is named '{pipeline.name}'")

    def _check_execution_backends(self) -> None:
        names = [spec.name for spec in self.execution_backends]
        if not names:
            self._fail("at least one execution backend is required")
        if repeated := _duplicates(names):
            self._fail(
                f"names of execution backends must be unique; given twice: {', '.join(repeated)}"
            )

    def _check_host_codegen(self) -> None:
        wanting = [spec.name for spec in self.execution_backends if spec.enable_host_codegen]
        if wanting and not self.host_codegens:
            self._fail(f"host_codegens are required by {', '.join(wanting)}")
        for kind, hooks in self.host_codegen_hooks.items():
            if kind not in self.target_kinds:
                self._fail(f"host_codegen_hooks name kind '{kind}', which is not one of its own")
            if not hooks:
                self._fail(f"host_codegen_hooks of kind '{kind}' are empty")
        if not all(self.callbacks):
            self._fail("a callback has an empty name")

    def matches(self, target: Target) -> bool:
        """Whether this backend compiles for ``target``."""
        if target_kind(target) not in self.target_kinds:
            return False
        return self.supports_target is None or bool(self.supports_target(target))

    def _kind(self, target: Target) -> str:
        kind = target_kind(target)
        if kind not in self.target_kinds:
            self._fail(f"does not compile for target kind '{kind}'; kinds: {self._list_kinds()}")
        return kind

    def _list_kinds(self) -> str:
        return ", ".join(self.target_kinds)

    def get_pipeline(self, target: Target) -> PassPipeline:
        """Return the pass pipeline for the kind of ``target``."""
        return self.pipelines[self._kind(target)]

    def lower(self, mod: IRModule, target: Target) -> IRModule:
        """Run the pipeline for ``target`` on ``mod``."""
        return self.get_pipeline(target).lower(mod, target)

    def get_device_codegen(self, target: Target) -> DeviceCodegen:
        """Return the device codegen for the kind of ``target``."""
        return self.device_codegens[self._kind(target)]

    def codegen_device(self, mod: IRModule, target: Target, *, compile_device: bool) -> Any:
        """Generate device code; ``compile_device`` also runs the device compiler."""
        return self.get_device_codegen(target).lower(mod, target, compile_device=compile_device)

    def get_host_codegen(self, target_host: Target) -> HostCodegen:
        """Return the host codegen for the kind of ``target_host``.

        Raises
        ------
        BackendError
            This backend cannot generate host code of that kind.
        """
        kind = str(target_host.kind.name)
        if kind not in self.host_codegens:
            kinds = ", ".join(sorted(self.host_codegens)) or "none"
            self._fail(f"no host code generation for host kind '{kind}'; host kinds: {kinds}")
        return self.host_codegens[kind]

    def codegen_host(self, mod: IRModule, target_host: Target) -> Any:
        """Generate host code for ``mod``."""
        return self.get_host_codegen(target_host).lower(mod, target_host)

    def preprocess_host_codegen(
        self, mod: IRModule, target_host: Target, target: Target
    ) -> IRModule:
        """Apply the host codegen hooks of the device's kind, in declared order."""
        for hook in self.host_codegen_hooks.get(self._kind(target), ()):
            mod = hook.apply(mod, target_host, target)
        return mod

    def allowed_execution_backends(
        self, target: Target, *, include_unavailable: bool = True
    ) -> tuple[str, ...]:
        """Return the names of the execution backends for ``target``, in the order of ``auto``."""
        return tuple(
            spec.name
            for spec in self.execution_backends
            if spec.matches(target) and (include_unavailable or spec.is_available())
        )

    def resolve_execution_backend(
        self, requested: str | None, target: Target, *, runnable: bool = True
    ) -> ExecutionBackendSpec:
        """Return the execution backend named ``requested``, or the first available for ``auto``.

        With ``runnable=False`` one that cannot run here will do, for lowering to text only.

        Raises
        ------
        BackendError
            The name is not declared for ``target``, or it cannot run here.
        """
        name = canonical_execution_backend(requested)
        allowed = [spec for spec in self.execution_backends if spec.matches(target)]
        if name == "auto":
            for spec in allowed:
                if spec.is_available():
                    return spec
            if allowed and not runnable:
                return allowed[0]
            self._fail("no execution backend can run here; " + _needs(allowed))
        for spec in allowed:
            if spec.name == name:
                if runnable and not spec.is_available():
                    self._fail(self._unavailable(spec, target))
                return spec
        raise BackendError(
            f"Invalid execution backend '{requested}' for target kind '{target_kind(target)}' "
            f"(backend '{self.name}'); allowed: auto, {', '.join(s.name for s in allowed)}"
        )

    def _unavailable(self, spec: ExecutionBackendSpec, target: Target) -> str:
        usable = self.allowed_execution_backends(target, include_unavailable=False)
        return (
            f"execution backend '{spec.name}' is not available here; {_needs([spec])}; "
            f"available: {', '.join(usable) or 'none'}"
        )


def _needs(specs: Iterable[ExecutionBackendSpec]) -> str:
    needs = [f"'{spec.name}' needs {spec.requires or 'what its adapter checks'}" for spec in specs]
    return ", ".join(needs) or "none is declared for this target"
