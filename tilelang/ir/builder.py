"""The statement builder behind a kernel that is being traced.

While a function is traced, one :class:`Builder` per thread is active. Language functions append
statements to it::

    from tilelang.ir import builder

    builder.emit(T.Evaluate(call, span=builder.user_span()))

A language function that emits a statement returns None: a call *returned* to the user and used as
a statement of its own is emitted by the tracer.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError
from tilelang.ir.span import user_frame, user_span

__all__ = [
    "Block",
    "Builder",
    "Frame",
    "activate",
    "current",
    "current_or_none",
    "emit",
    "seq",
    "user_span",
]

FrameKind = Literal["kernel", "for", "while", "then", "else"]


def seq(stmts: Sequence[T.Stmt], span: ir.Span | None = None) -> T.Stmt:
    """Join statements: none becomes a no-op, one stays itself."""
    if not stmts:
        return T.Evaluate(0, span)
    return stmts[0] if len(stmts) == 1 else T.SeqStmt(list(stmts), span)


@dataclass
class Block:
    """Statements being collected, plus the wrappers around what follows them."""

    stmts: list[T.Stmt] = field(default_factory=list)
    wrappers: list[tuple[int, Callable[[T.Stmt], T.Stmt]]] = field(default_factory=list)
    ended: bool = False  # a break or continue was emitted: what follows cannot run
    warned: bool = False

    def insert(self, index: int, stmt: T.Stmt) -> None:
        """Put a statement before the one at ``index``, outside the wrappers that begin there."""
        self.stmts.insert(index, stmt)
        self.wrappers = [(start + (start >= index), wrap) for start, wrap in self.wrappers]

    def finish(self, keep: int = 0) -> list[T.Stmt]:
        """Apply the wrappers but the first ``keep``, innermost first; return the statements."""
        stmts = self.stmts
        for start, wrap in reversed(self.wrappers[keep:]):
            stmts[start:] = [wrap(seq(stmts[start:]))]
        del self.wrappers[keep:]
        return stmts


def _warn_unreachable() -> None:
    frame = user_frame()
    if frame is not None:
        message = "code after break or continue is never executed; it is dropped"
        warnings.warn_explicit(message, SyntaxWarning, frame.f_code.co_filename, frame.f_lineno)


@dataclass
class Frame:
    """An open construct of the traced program: a launch, a loop or a branch."""

    kind: FrameKind
    span: ir.Span | None
    info: Any = None  # the launch, or the loop specification
    block: int = 0  # position of the block that will hold it


class Builder:
    """Collects the statements of one function.

    Attributes
    ----------
    name : str
        Name of the function.
    annotations : dict
        Facts about the whole function that become attributes: ``pass_configs`` (dict),
        ``compile_flags`` (list), ``out_idx`` (list of negative int).
    frames : list of Frame
        Open launches, loops and branches, outermost first.
    emitted : int
        Number of statements emitted so far; unchanged means "had no effect".
    session : object
        What the front end keeps beside the statements (arguments, phase); not for other users.
    """

    def __init__(self, name: str, session: Any = None) -> None:
        self.name = name
        self.annotations: dict[str, Any] = {}
        self.frames: list[Frame] = []
        self.emitted = 0
        self.session = session
        self.name_hint: str | None = None
        self.name_prefix = ""
        self._blocks: list[Block] = [Block()]

    @property
    def block_now(self) -> Block:
        """The innermost open block."""
        return self._blocks[-1]

    @property
    def stmts(self) -> list[T.Stmt]:
        """The statements of the innermost open block."""
        return self._blocks[-1].stmts

    def emit(self, stmt: T.Stmt) -> None:
        """Append a statement to the innermost open block."""
        self.emitted += 1
        block = self._blocks[-1]
        if not block.ended:
            block.stmts.append(stmt)
        elif not block.warned:
            block.warned = True
            _warn_unreachable()

    def end_block(self) -> None:
        """Drop what would follow in the innermost block: control has left it."""
        self._blocks[-1].ended = True

    @property
    def ended(self) -> bool:
        """Whether control has left the innermost block."""
        return self._blocks[-1].ended

    def wrap_rest(self, wrap: Callable[[T.Stmt], T.Stmt]) -> Callable[[], None]:
        """Wrap everything that follows in the innermost block, for statements with a body.

        Calling the result ends the body there, and that of wrappers opened inside.

        Example: ``builder.wrap_rest(lambda body: T.AttrStmt(node, "key", value, body))``.
        """
        block = self._blocks[-1]
        position = len(block.wrappers)
        block.wrappers.append((len(block.stmts), wrap))
        self.emitted += 1

        def close() -> None:
            block.finish(position)

        return close

    def bind(self, name: str, value: ir.Expr, span: ir.Span | None = None) -> ir.Var:
        """Evaluate ``value`` here, once, and return the variable that holds it."""
        span = span or user_span()
        var = T.Var(name, value.ty, span)
        self.emit(T.Bind(var, value, span))
        return var

    def value_of(self, var: ir.Var) -> ir.Expr | None:
        """The value that :meth:`bind` gave ``var`` in a block that is still open, or None."""
        for block in reversed(self._blocks):
            for stmt in reversed(block.stmts):
                if isinstance(stmt, T.Bind) and stmt.var.same_as(var):
                    return stmt.value
        return None

    def take_name(self, default: str) -> str:
        """The name of the variable being assigned in the user's code, or ``default``."""
        return f"{self.name_prefix}{self.name_hint or default}"

    def push(self, kind: FrameKind, info: Any = None, span: ir.Span | None = None) -> Frame:
        """Open a construct and a block for its body."""
        frame = Frame(kind, span or user_span(), info, len(self._blocks) - 1)
        self.frames.append(frame)
        self._blocks.append(Block())
        return frame

    def pop(self, frame: Frame) -> list[T.Stmt]:
        """Close the construct ``frame`` and return the statements of its body."""
        open_frame = self.frames[-1] if self.frames else frame
        if open_frame is not frame:
            raise TraceError(
                f"a run-time '{open_frame.kind}' block was left by an exception or a jump; the "
                "trace cannot go on",
                open_frame.span,
            )
        self.frames.pop()
        return self._blocks.pop().finish()

    @contextmanager
    def block(self) -> Iterator[list[T.Stmt]]:
        """Collect statements apart: ``with b.block() as stmts: ...``; nothing is emitted."""
        inner = Block()
        depth = len(self._blocks)
        self._blocks.append(inner)
        yield inner.stmts
        assert len(self._blocks) == depth + 1 and self._blocks.pop() is inner, "unbalanced blocks"
        inner.finish()

    @contextmanager
    def before_kernel(self) -> Iterator[None]:
        """Emit to the host side: just before the launch whose body is being traced."""
        position = next(k for k, frame in enumerate(self.frames) if frame.kind == "kernel")
        frames, blocks = self.frames, self._blocks
        outside = self.frames[position].block
        self.frames, self._blocks = frames[:position], blocks[: outside + 1]
        yield
        self.frames, self._blocks = frames, blocks

    def innermost(self, *kinds: str) -> Frame | None:
        """The innermost open frame of one of ``kinds``, or None."""
        for frame in reversed(self.frames):
            if frame.kind in kinds:
                return frame
        return None

    @property
    def kernel(self) -> Any:
        """The launch (``KernelLaunchFrame``) whose body is being traced, or None."""
        frame = self.innermost("kernel")
        return None if frame is None else frame.info

    @property
    def in_control_flow(self) -> bool:
        """Whether a run-time loop or branch is open."""
        return self.innermost("for", "while", "then", "else") is not None

    def finish(self) -> list[T.Stmt]:
        """The statements of the whole function; every construct must be closed."""
        assert not self.frames and len(self._blocks) == 1, "unbalanced blocks"
        return self._blocks[0].finish()


class _Active(threading.local):
    def __init__(self) -> None:
        self.stack: list[Builder] = []


_active = _Active()


def current_or_none() -> Builder | None:
    """The builder of the kernel being traced in this thread, or None."""
    stack = _active.stack
    return stack[-1] if stack else None


def current(what: str = "this") -> Builder:
    """The builder of the kernel being traced in this thread.

    Raises
    ------
    TraceError
        If no kernel is being traced; ``what`` names the construct in the message.
    """
    stack = _active.stack
    if not stack:
        raise TraceError(
            f"{what} is only valid inside a traced kernel (a function decorated with "
            "@tilelang.jit, @T.prim_func or @T.macro)",
            user_span(),
        )
    return stack[-1]


def emit(stmt: T.Stmt) -> None:
    """Append a statement to the kernel being traced."""
    current().emit(stmt)


@contextmanager
def activate(builder: Builder) -> Iterator[Builder]:
    """Make ``builder`` the current one of this thread."""
    _active.stack.append(builder)
    try:
        yield builder
    finally:
        assert _active.stack.pop() is builder, "unbalanced builders"
