"""Persistent kernels: each block works through several tiles, chosen by a scheduler.

::

    with T.Kernel(num_workers, threads=128) as worker:
        tiles = T.PersistentTileScheduler(M // 128, N // 128, num_workers, swizzle_size=8)
        tiles.init(worker)
        while tiles.valid():
            compute(tiles.m_idx, tiles.n_idx)
            tiles.next_tile()
"""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError
from tilelang.ir import arith, builder, intrin
from tilelang.ir.expr import const_int, convert
from tilelang.ir.span import user_span
from tilelang.language.allocate import alloc_var

__all__ = ["BaseTileScheduler", "PersistentTileScheduler"]


def _store(variable: ir.Var, value: Any) -> None:
    span = user_span()
    builder.emit(T.BufferStore(variable, convert(value, "int32"), [0], span))


class BaseTileScheduler:
    """Keeps which tile a block works on; a subclass says where each tile lies.

    Parameters
    ----------
    stateful : bool
        Whether to keep the current tile in variables. Without, only the mapping of a subclass is
        of use.
    name : str, optional
        Prefix of the variables in the IR.
    """

    def __init__(self, stateful: bool = True, name: str | None = None) -> None:
        self.stateful = stateful
        self.name = name or "tiles"
        self._state: dict[str, ir.Var] = {}

    def _open(self) -> None:
        if not self.stateful:
            raise TraceError("this scheduler was made with stateful=False", user_span())
        active = builder.current(f"{type(self).__name__}.init")
        hint = active.name_hint
        for field in ("linear_idx", "current_iter", "m_idx", "n_idx"):
            active.name_hint = f"{self.name}_{field}"
            self._state[field] = alloc_var("int32")
        active.name_hint = hint

    def _read(self, field: str) -> ir.Expr:
        if field not in self._state:
            raise TraceError(f"{self.name}.{field}: call init() first", user_span())
        return T.BufferLoad(self._state[field], [0], user_span())

    @property
    def linear_idx(self) -> ir.Expr:
        """The number of the current tile."""
        return self._read("linear_idx")

    @property
    def current_iter(self) -> ir.Expr:
        """How many tiles this block has finished."""
        return self._read("current_iter")

    @property
    def m_idx(self) -> ir.Expr:
        """The row of the current tile, in tiles."""
        return self._read("m_idx")

    @property
    def n_idx(self) -> ir.Expr:
        """The column of the current tile, in tiles."""
        return self._read("n_idx")

    def set_current_idx(self, m_idx: Any, n_idx: Any) -> None:
        """Set the row and column of the current tile, from :meth:`update_current_idx`."""
        _store(self._state["m_idx"], m_idx)
        _store(self._state["n_idx"], n_idx)

    def update_current_idx(self) -> None:
        """Work out row and column of tile :attr:`linear_idx`; implemented by subclasses."""
        raise TraceError(f"{type(self).__name__} must implement update_current_idx", user_span())


class PersistentTileScheduler(BaseTileScheduler):
    """Tiles of a matrix in panels that fit the cache, dealt to workers in turn.

    Parameters
    ----------
    num_m_tiles, num_n_tiles : int or expression
        Rows and columns of tiles.
    num_workers : int or expression, optional
        Blocks, or clusters if ``cluster_size`` > 1, that share the work. The default, one for each
        multiprocessor, needs a CUDA device.
    swizzle_size : int
        Width of a panel in tiles.
    column_major : bool
        Panels are groups of columns walked row by row; False: groups of rows walked by columns.
    cluster_size : int
        Blocks of a cluster that take neighbouring rows (sm_90).
    stateful, name
        See :class:`BaseTileScheduler`.

    Raises
    ------
    TraceError
        If a size is below 1, or there is no device to count.
    """

    def __init__(
        self,
        num_m_tiles: Any,
        num_n_tiles: Any,
        num_workers: Any = None,
        swizzle_size: int = 1,
        column_major: bool = True,
        cluster_size: int = 1,
        stateful: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(stateful, name)
        if swizzle_size < 1 or cluster_size < 1:
            raise TraceError(
                f"PersistentTileScheduler: swizzle_size {swizzle_size} and cluster_size "
                f"{cluster_size} must be >= 1",
                user_span(),
            )
        self.num_m_tiles, self.num_n_tiles = num_m_tiles, num_n_tiles
        self.num_workers = _count_workers(cluster_size) if num_workers is None else num_workers
        for what, size in (
            ("num_m_tiles", num_m_tiles),
            ("num_n_tiles", num_n_tiles),
            ("num_workers", self.num_workers),
        ):
            known = const_int(size)
            if known is not None and known < 1:
                raise TraceError(f"PersistentTileScheduler: {what} must be >= 1", user_span())
        self.swizzle_size, self.column_major = swizzle_size, column_major
        self.cluster_size = cluster_size

    @property
    def total(self) -> Any:
        """Number of tiles, or of groups of ``cluster_size`` rows of them."""
        return arith.multiply(arith.ceildiv(self.num_m_tiles, self.cluster_size), self.num_n_tiles)

    def coord(self, tile_id: Any) -> tuple[Any, Any]:
        """Row and column of tile ``tile_id`` in the order of the schedule."""
        rows = arith.ceildiv(self.num_m_tiles, self.cluster_size)
        columns = self.num_n_tiles
        across, along = (columns, rows) if self.column_major else (rows, columns)
        panel_tiles = arith.multiply(self.swizzle_size, along)
        first = arith.multiply(arith.floordiv(tile_id, panel_tiles), self.swizzle_size)
        inside = arith.floormod(tile_id, panel_tiles)
        width = arith.minimum(self.swizzle_size, arith.subtract(across, first))
        a = arith.add(first, arith.floormod(inside, width))
        b = arith.floordiv(inside, width)
        m, n = (b, a) if self.column_major else (a, b)
        if self.cluster_size > 1:
            rank = intrin.get("block_rank_in_cluster")()
            m = arith.add(arith.multiply(m, self.cluster_size), rank)
        return m, n

    def init(self, worker_id: Any) -> None:
        """Start with the first tile of worker ``worker_id``."""
        self._open()
        _store(self._state["linear_idx"], worker_id)
        _store(self._state["current_iter"], 0)
        self.update_current_idx()

    def update_current_idx(self) -> None:
        """Work out row and column of tile :attr:`linear_idx`."""
        self.set_current_idx(*self.coord(self.linear_idx))

    def next_tile(self) -> None:
        """Go on to the worker's next tile."""
        _store(self._state["linear_idx"], arith.add(self.linear_idx, self.num_workers))
        _store(self._state["current_iter"], arith.add(self.current_iter, 1))
        self.update_current_idx()

    def valid(self) -> ir.Expr:
        """Whether there is a current tile."""
        return arith.binary("lt", self.linear_idx, self.total)


def _count_workers(cluster_size: int) -> int:
    import torch  # only to count the multiprocessors of the current device

    if not torch.cuda.is_available():
        raise TraceError(
            "PersistentTileScheduler: no CUDA device to count processors of; give num_workers=",
            user_span(),
        )
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    return max(1, int(device.multi_processor_count) // cluster_size)
