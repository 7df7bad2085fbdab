"""``T.Kernel``: the launch of a grid of thread blocks, and questions about the current one."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder
from tilelang.ir.builder import Builder, Frame, seq
from tilelang.ir.expr import const_int, convert, is_int_dtype
from tilelang.ir.span import user_span
from tilelang.language.eager.mode import declares_kernel

__all__ = [
    "Kernel",
    "KernelLaunchFrame",
    "get_block_binding",
    "get_block_bindings",
    "get_block_extent",
    "get_block_extents",
    "get_thread_binding",
    "get_thread_bindings",
    "get_thread_extent",
    "get_thread_extents",
]

_AXES = "xyz"
_DEFAULT_THREADS = 128


class KernelLaunchFrame:
    """A launch: its extents and index variables. Made by :func:`Kernel`, used in ``with``.

    Attributes
    ----------
    annotations : dict
        Attached to the outermost loop of the launch.
    """

    def __init__(
        self,
        blocks: Sequence[Any],
        threads: Sequence[int],
        annotations: dict[str, Any] | None = None,
    ) -> None:
        self._span = user_span()
        self._blocks = [_block_extent(extent, self._span) for extent in (blocks or (1,))]
        if len(self._blocks) > len(_AXES):
            raise TraceError(
                f"T.Kernel takes up to 3 grid dimensions, found {len(self._blocks)}", self._span
            )
        self._threads = [_thread_extent(extent, self._span) for extent in threads]
        if not 1 <= len(self._threads) <= len(_AXES):
            raise TraceError(
                f"T.Kernel: threads takes 1 to 3 dimensions, found {len(self._threads)}", self._span
            )
        self._threads += [1] * (len(_AXES) - len(self._threads))
        self.annotations: dict[str, Any] = {"tl.launch": 1, **(annotations or {})}
        self._names: list[str] = [f"b{axis}" for axis in _AXES]
        self._block_vars: list[ir.Var] = []
        self._thread_vars: list[ir.Var] = []
        self._builder: Builder | None = None
        self._frame: Frame | None = None

    def name_indices(self, pattern: Any) -> None:
        """Name the block indices after the target of the ``with`` statement."""
        names = [pattern] if isinstance(pattern, str) else list(pattern or ())
        if isinstance(pattern, str) and len(self._blocks) > 1:
            names = [f"{pattern}_{axis}" for axis in _AXES]
        for position, name in enumerate(names[: len(self._names)]):
            if isinstance(name, str):
                self._names[position] = name

    def __enter__(self) -> Any:
        current = builder.current("T.Kernel")
        if current.session is not None:
            current.session.reach_kernel()
        if current.kernel is not None:
            raise TraceError("T.Kernel cannot be opened inside another T.Kernel", self._span)
        self._builder = current
        self._block_vars = [
            T.Var(name, "int32", self._span)
            for name, _ in zip(self._names, self._blocks, strict=False)
        ]
        self._thread_vars = [T.Var(f"t{axis}", "int32", self._span) for axis in _AXES]
        self._frame = current.push("kernel", self, self._span)
        return self._block_vars[0] if len(self._blocks) == 1 else list(self._block_vars)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        assert self._builder is not None and self._frame is not None
        body = seq(self._builder.pop(self._frame), self._span)
        self._builder.emit(self._launch(body))

    def _launch(self, body: T.Stmt) -> T.Stmt:
        axes: list[tuple[ir.Var, Any, str]] = [
            *zip(self._block_vars, self._blocks, (f"blockIdx.{a}" for a in _AXES), strict=False),
            *zip(self._thread_vars, self._threads, (f"threadIdx.{a}" for a in _AXES), strict=True),
        ]
        for position, (var, extent, tag) in reversed(list(enumerate(axes))):
            binding = T.IterVar(None, T.Var(tag, "int32"), T.IterVar.ThreadIndex, tag)
            notes = dict(self.annotations) if position == 0 else None
            kind = T.ForKind.THREAD_BINDING
            body = T.For(
                var, 0, convert(extent, "int32"), kind, body, binding, notes, None, self._span
            )
        return body

    @staticmethod
    def Current() -> KernelLaunchFrame | None:
        """The launch whose body is being traced, or None."""
        active = builder.current_or_none()
        return None if active is None else active.kernel

    @property
    def blocks(self) -> list[ir.Var]:
        """The block indices."""
        return list(self._block_vars)

    @property
    def threads(self) -> list[ir.Var]:
        """The thread indices x, y, z."""
        return list(self._thread_vars)

    @property
    def num_threads(self) -> int:
        """Threads per block."""
        return self.get_num_threads()

    def get_num_threads(self) -> int:
        """Threads per block."""
        x, y, z = self._threads
        return x * y * z

    def get_block_extent(self, dim: int) -> Any:
        """Number of blocks along ``dim``: an int if it is constant, else an expression."""
        return self._blocks[_dimension(dim, len(self._blocks), "block")]

    def get_block_extents(self) -> list[Any]:
        """Number of blocks along each grid dimension."""
        return list(self._blocks)

    def get_thread_extent(self, dim: int) -> int:
        """Number of threads along ``dim``."""
        return self._threads[_dimension(dim, len(_AXES), "thread")]

    def get_thread_extents(self) -> list[int]:
        """Number of threads along x, y, z."""
        return list(self._threads)

    def get_thread_binding(self, dim: int = 0) -> ir.Var:
        """The thread index along ``dim``."""
        return self._thread_vars[_dimension(dim, len(_AXES), "thread")]

    def get_thread_bindings(self) -> list[ir.Var]:
        """The thread indices x, y, z."""
        return list(self._thread_vars)

    def get_block_binding(self, dim: int = 0) -> ir.Var:
        """The block index along ``dim``."""
        return self._block_vars[_dimension(dim, len(self._blocks), "block")]

    def get_block_bindings(self) -> list[ir.Var]:
        """The block indices."""
        return list(self._block_vars)


def _dimension(dim: int, rank: int, what: str) -> int:
    if not 0 <= dim < rank:
        raise TraceError(
            f"{what} dimension {dim} does not exist; this launch has {rank}", user_span()
        )
    return dim


def _constant(extent: Any) -> int | None:
    if isinstance(extent, bool):
        return None
    number = const_int(extent)
    if number is None and not isinstance(extent, ir.Expr):
        try:
            number = operator.index(extent)
        except TypeError:
            return None
    return number


def _block_extent(extent: Any, span: ir.Span | None) -> Any:
    number = _constant(extent)
    if number is not None:
        if number < 0:
            raise TraceError(
                f"T.Kernel: a grid dimension must not be negative, found {number}", span
            )
        return number
    if isinstance(extent, ir.Expr) and isinstance(extent.ty, ir.PrimType):
        dtype = str(extent.ty.dtype)
        if is_int_dtype(dtype):
            return extent if dtype == "int32" else extent.astype("int32")
    raise TraceTypeError(f"T.Kernel: a grid dimension must be an integer, found {extent!r}", span)


def _thread_extent(extent: Any, span: ir.Span | None) -> int:
    number = _constant(extent)
    if number is None:
        raise TraceTypeError(
            f"T.Kernel: threads must be ints known while the kernel is traced, found {extent!r}",
            span,
        )
    if number <= 0:
        raise TraceError(f"T.Kernel: threads must be > 0, found {number}", span)
    return number


@declares_kernel
def Kernel(
    *blocks: Any, threads: int | Sequence[int] | None = None, prelude: str | None = None
) -> KernelLaunchFrame:
    """Launch a grid of thread blocks; the body of the ``with`` statement runs once per block.

    Parameters
    ----------
    *blocks : int or expression
        Blocks per grid dimension, up to three, x first. None at all is one block. With a zero
        extent nothing is launched.
    threads : int or sequence of int, optional
        Threads per block along x, y, z. Default 128. A CPU is free to ignore it.
    prelude : str, optional
        Source text put before the kernel in the generated code.

    Returns
    -------
    KernelLaunchFrame
        A context manager that yields the block index, or a list of them for 2 and 3 dimensions.

    Raises
    ------
    TraceError
        For more than three dimensions, negative extents or non-positive thread counts.

    Examples
    --------
    >>> with T.Kernel(T.ceildiv(N, 128), 8, threads=256) as (bx, by):  # doctest: +SKIP
    ...     ...
    """
    if threads is None:
        threads = _DEFAULT_THREADS
    sizes = list(threads) if isinstance(threads, Sequence) else [threads]
    notes = {} if prelude is None else {"pragma_import_c": prelude}
    return KernelLaunchFrame(blocks, sizes, notes)


def _launch(what: str) -> KernelLaunchFrame:
    frame = builder.current(what).kernel
    if frame is None:
        raise TraceError(f"{what} is only valid inside 'with T.Kernel(...)'", user_span())
    launch: KernelLaunchFrame = frame
    return launch


def get_thread_binding(dim: int = 0) -> ir.Var:
    """The thread index along ``dim`` (0 is x) of the current launch."""
    return _launch("T.get_thread_binding").get_thread_binding(dim)


def get_thread_bindings() -> list[ir.Var]:
    """The thread indices x, y, z of the current launch."""
    return _launch("T.get_thread_bindings").get_thread_bindings()


def get_block_binding(dim: int = 0) -> ir.Var:
    """The block index along ``dim`` (0 is x) of the current launch."""
    return _launch("T.get_block_binding").get_block_binding(dim)


def get_block_bindings() -> list[ir.Var]:
    """The block indices of the current launch."""
    return _launch("T.get_block_bindings").get_block_bindings()


def get_thread_extent(dim: int = 0) -> int:
    """Threads per block along ``dim`` (0 is x)."""
    return _launch("T.get_thread_extent").get_thread_extent(dim)


def get_thread_extents() -> list[int]:
    """Threads per block along x, y, z."""
    return _launch("T.get_thread_extents").get_thread_extents()


def get_block_extent(dim: int = 0) -> Any:
    """Blocks along ``dim`` (0 is x): an int, or an expression if it is not constant."""
    return _launch("T.get_block_extent").get_block_extent(dim)


def get_block_extents() -> list[Any]:
    """Blocks along each grid dimension."""
    return _launch("T.get_block_extents").get_block_extents()
