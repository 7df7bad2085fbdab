"""Explicit warp specialisation: which warps run which statements, and how they hand data over.

A schedule is data: roles (ranges of warps), pipelines (buffers with full and empty barriers) and,
for the kernel body and each named loop, the program of each role. Statements are named with
:func:`ws_op` or the annotation key :data:`WSID`. Only backends with asynchronous copies use it
(CUDA); elsewhere the program runs as written, with the same results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder
from tilelang.ir.span import user_span

__all__ = [
    "WSID",
    "WSInstr",
    "WSOpRef",
    "WSPipeline",
    "WSRole",
    "WSSchedule",
    "WSScope",
    "WSSync",
    "WSSyncKind",
    "annotate_ws_schedule",
    "ws_op",
]

#: Annotation key that names a tile op or loop for a schedule.
WSID = "tl.ws_op_id"


class WSSyncKind(Enum):
    """The four hand-over points of a pipeline."""

    PRODUCER_ACQUIRE = "producer_acquire"
    PRODUCER_COMMIT = "producer_commit"
    CONSUMER_WAIT = "consumer_wait"
    CONSUMER_RELEASE = "consumer_release"


@dataclass(frozen=True)
class WSInstr:
    """One step of a role's program."""


@dataclass(frozen=True)
class WSOpRef(WSInstr):
    """Run the statement named ``id``."""

    id: str


@dataclass(frozen=True)
class WSSync(WSInstr):
    """Wait for or announce data of ``pipeline``; ``stage`` shifts by iterations."""

    kind: WSSyncKind
    pipeline: str
    stage: int = 0

    @classmethod
    def producer_acquire(cls, pipeline: str, stage: int = 0) -> WSSync:
        """Wait until the slot to be filled is free."""
        return cls(WSSyncKind.PRODUCER_ACQUIRE, pipeline, stage)

    @classmethod
    def producer_commit(cls, pipeline: str, stage: int = 0) -> WSSync:
        """Announce that the slot is filled."""
        return cls(WSSyncKind.PRODUCER_COMMIT, pipeline, stage)

    @classmethod
    def consumer_wait(cls, pipeline: str, stage: int = 0) -> WSSync:
        """Wait until the slot to be read is filled."""
        return cls(WSSyncKind.CONSUMER_WAIT, pipeline, stage)

    @classmethod
    def consumer_release(cls, pipeline: str, stage: int = 0) -> WSSync:
        """Announce that the slot has been read."""
        return cls(WSSyncKind.CONSUMER_RELEASE, pipeline, stage)


@dataclass(frozen=True)
class WSRole:
    """Warps ``warps_lo`` up to and without ``warps_hi``; ``max_nreg`` registers, 0 = default."""

    name: str
    warps_lo: int = field(kw_only=True)
    warps_hi: int = field(kw_only=True)
    max_nreg: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 <= self.warps_lo < self.warps_hi:
            raise TraceError(
                f"role {self.name}: warps {self.warps_lo} to {self.warps_hi} are no range",
                user_span(),
            )
        if self.max_nreg % 8 or not 0 <= self.max_nreg <= 256:
            raise TraceError(
                f"role {self.name}: max_nreg must be a multiple of 8 up to 256", user_span()
            )


@dataclass(frozen=True)
class WSPipeline:
    """``buffers`` kept in ``depth`` versions behind one pair of full and empty barriers."""

    name: str
    buffers: tuple[Any, ...]
    depth: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "buffers", tuple(self.buffers))
        if self.depth < 1:
            raise TraceError(f"pipeline {self.name}: depth must be 1 or more", user_span())


@dataclass(frozen=True)
class WSScope:
    """The programs of the roles in the kernel body (:attr:`ROOT`) or in the loop named ``id``."""

    ROOT = "tl.ws_scope_root"

    id: str
    bodies: Mapping[str, Sequence[WSInstr]]


@dataclass(frozen=True)
class WSSchedule:
    """A whole schedule.

    Raises
    ------
    TraceError
        If roles overlap or leave the block, names repeat, or a program names an unknown role or
        pipeline.
    """

    num_warps: int
    roles: tuple[WSRole, ...]
    pipelines: tuple[WSPipeline, ...]
    scopes: tuple[WSScope, ...]

    def __post_init__(self) -> None:
        for name in ("roles", "pipelines", "scopes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._check_roles()
        pipelines = _unique("pipeline", [pipeline.name for pipeline in self.pipelines])
        roles = _unique("role", [role.name for role in self.roles])
        _unique("scope", [scope.id for scope in self.scopes])
        for scope in self.scopes:
            for role in scope.bodies:
                if role not in roles:
                    raise TraceError(f"scope {scope.id}: there is no role {role}", user_span())
            steps = [step for program in scope.bodies.values() for step in program]
            for name in (step.pipeline for step in steps if isinstance(step, WSSync)):
                if name not in pipelines:
                    raise TraceError(f"scope {scope.id}: there is no pipeline {name}", user_span())

    def as_node(self) -> dict[str, Any]:
        """The schedule as nested containers, the form it has in the IR."""
        return {
            "num_warps": self.num_warps,
            "roles": [[r.name, r.warps_lo, r.warps_hi, r.max_nreg] for r in self.roles],
            "pipelines": [[p.name, list(p.buffers), p.depth] for p in self.pipelines],
            "scopes": [
                [scope.id, {role: [_step(s) for s in body] for role, body in scope.bodies.items()}]
                for scope in self.scopes
            ],
        }

    def _check_roles(self) -> None:
        end = 0
        for role in sorted(self.roles, key=lambda role: role.warps_lo):
            if role.warps_lo < end or role.warps_hi > self.num_warps:
                raise TraceError(
                    f"role {role.name}: warps {role.warps_lo} to {role.warps_hi} overlap another "
                    f"role or leave the {self.num_warps} warps of the block",
                    user_span(),
                )
            end = role.warps_hi


def _step(step: WSInstr) -> list[Any]:
    if isinstance(step, WSSync):
        return [step.kind.value, step.pipeline, step.stage]
    if isinstance(step, WSOpRef):
        return ["op", step.id]
    raise TraceTypeError(f"a program has WSOpRef and WSSync steps, found {step!r}", user_span())


def _unique(what: str, names: list[str]) -> set[str]:
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise TraceError(f"{what} {sorted(repeated)[0]} is declared twice", user_span())
    return set(names)


def annotate_ws_schedule(schedule: WSSchedule) -> None:
    """Attach an explicit schedule to the kernel.

    Raises
    ------
    TraceTypeError
        If ``schedule`` is no :class:`WSSchedule`.
    TraceError
        Outside of a kernel.
    """
    if not isinstance(schedule, WSSchedule):
        raise TraceTypeError(
            f"T.annotate_ws_schedule: expected a WSSchedule, found {type(schedule).__name__}",
            user_span(),
        )
    span, node = user_span(), schedule.as_node()
    builder.current("T.annotate_ws_schedule").wrap_rest(
        lambda body: T.AttrStmt(node, "tl.ws_schedule", T.IntImm("int32", 0), body, span)
    )


@contextmanager
def ws_op(op_id: str) -> Iterator[None]:
    """Name the statements of the block for a schedule: ``with T.ws_op("scale"): ...``."""
    active, span = builder.current("T.ws_op"), user_span()
    with active.block() as stmts:
        yield
    if stmts:
        body = builder.seq(stmts, span)
        active.emit(T.AttrStmt(T.IntImm("int32", 0), WSID, ir.StringImm(op_id), body, span))
