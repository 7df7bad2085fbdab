"""Matrix products written instruction by instruction: ``ldmatrix``, ``mma.sync``, stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tvm import ir
from tvm import tirx as T

from tilelang.cuda.intrinsics.mma_layout import ldmatrix_position, mma_store_index_map
from tilelang.cuda.intrinsics.mma_rows import MMA_ROWS, MmaRow
from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder, intrin
from tilelang.ir.dtype import AnyDType, dtype
from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.region import region_extents, region_mins
from tilelang.ir.span import user_span
from tilelang.layout import Fragment
from tilelang.transform.simt.barriers import unit

__all__ = ["TensorCoreIntrinEmitter"]

_WARP = 32
_PTX = {
    "float16": "f16", "bfloat16": "bf16", "float32": "tf32", "float64": "f64", "int8": "s8",
    "uint8": "u8", "float8_e4m3": "e4m3", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip
_PTX_SUMS = {"float16": "f16", "float32": "f32", "float64": "f64", "int32": "s32"}


class TensorCoreIntrinEmitter:
    """Writes the matrix instructions of a block whose warps tile the result in a grid.

    A warp computes ``warp_row_tiles`` x ``warp_col_tiles`` results in tiles of
    ``micro_size_x`` x ``micro_size_y``; its registers are ``T.alloc_local`` arrays of
    ``warp_rows * local_size_a``, ``warp_cols * local_size_b`` and ``warp_rows * warp_cols *
    local_size_out`` elements.

    Parameters
    ----------
    a_dtype, b_dtype : AnyDType
        float16, bfloat16, float32 (as tf32), float64, int8, uint8, float8 e4m3 or e5m2.
    accum_dtype : AnyDType
        Of the sums.
    a_transposed : bool
        A lies as (k, m) instead of (m, k).
    b_transposed : bool
        B lies as (n, k) instead of (k, n).
    block_row_warps, block_col_warps : int
        Warps of the block along m and n.
    warp_row_tiles, warp_col_tiles : int
        Results of a warp along m and n.
    chunk : int
        Elements along k of a shared tile.
    reduce_k : int
        Groups of warps that each take a part of k.
    num_elems_per_byte : int
        Must be 1: packed elements are not available.
    is_m_first : bool
        Neighbouring warps lie along n instead of m.
    thread_var : expression, optional
        The number of the thread; that of the launch by default.

    Raises
    ------
    TraceError
        If there is no instruction of these types, or the sizes are no multiples of its own.

    Examples
    --------
    >>> emitter = T.TensorCoreIntrinEmitter(                         # doctest: +SKIP
    ...     "float16", "float16", "float32", b_transposed=True,
    ...     block_row_warps=2, block_col_warps=2, warp_row_tiles=32, warp_col_tiles=32, chunk=32)
    >>> for ki in T.serial(32 // emitter.micro_size_k):              # doctest: +SKIP
    ...     emitter.ldmatrix_a(a_local, a_shared, ki)
    ...     emitter.ldmatrix_b(b_local, b_shared, ki)
    ...     emitter.mma(a_local, b_local, c_local)
    """

    WARP_SIZE = _WARP

    def __init__(
        self,
        a_dtype: AnyDType = "float16",
        b_dtype: AnyDType = "float16",
        accum_dtype: AnyDType = "float16",
        a_transposed: bool = False,
        b_transposed: bool = False,
        block_row_warps: int = 2,
        block_col_warps: int = 2,
        warp_row_tiles: int = 8,
        warp_col_tiles: int = 8,
        chunk: int = 16,
        reduce_k: int = 1,
        num_elems_per_byte: int = 1,
        is_m_first: bool = False,
        thread_var: Any = None,
    ) -> None:
        self.a_dtype, self.b_dtype, self.accum_dtype = (
            str(dtype(kind)) for kind in (a_dtype, b_dtype, accum_dtype)
        )
        self.a_transposed, self.b_transposed = a_transposed, b_transposed
        self.block_row_warps, self.block_col_warps = block_row_warps, block_col_warps
        self.warp_row_tiles, self.warp_col_tiles = warp_row_tiles, warp_col_tiles
        self.chunk, self.reduce_k, self.is_m_first = chunk, reduce_k, is_m_first
        self.thread_var = thread_var
        if num_elems_per_byte != 1:
            raise TraceError(f"{_what()}: packed elements are not available", user_span())
        self.row = self._find_row()
        self.micro_size_x, self.micro_size_k = self.row.m, self.row.k
        narrow = self.row.m == 8 or warp_col_tiles % 16
        self.micro_size_y = 8 if narrow else 16
        self._check_sizes()
        a, b, d = self.row.elements
        pairs = self.micro_size_y // self.row.n
        self.local_size_a, self.local_size_b, self.local_size_out = a, b * pairs, d * pairs
        self.warp_rows = warp_row_tiles // self.micro_size_x
        self.warp_cols = warp_col_tiles // self.micro_size_y
        self.threads = _WARP * block_row_warps * block_col_warps * reduce_k

    def _find_row(self) -> MmaRow:
        names = (
            _PTX_SUMS.get(self.accum_dtype), _PTX.get(self.a_dtype), _PTX.get(self.b_dtype),
        )  # fmt: skip
        rows = [row for row in MMA_ROWS if (row.d, row.a, row.b) == names]
        if not rows:
            raise TraceError(
                f"{_what()}: there is no matrix instruction of {self.a_dtype} and {self.b_dtype} "
                f"with sums of {self.accum_dtype}",
                user_span(),
            )
        return max(rows, key=lambda row: row.m * row.n * row.k)

    def _check_sizes(self) -> None:
        for name, size, step in (
            ("warp_row_tiles", self.warp_row_tiles, self.micro_size_x),
            ("warp_col_tiles", self.warp_col_tiles, self.micro_size_y),
            ("chunk", self.chunk, self.micro_size_k),
        ):
            if size < 1 or size % step:
                raise TraceError(
                    f"{_what()}: {name} must be a multiple of {step} for {self.row.name}, found "
                    f"{size}",
                    user_span(),
                )

    # -- threads -------------------------------------------------------------------------------
    def get_thread_binding(self) -> Any:
        """The number of the thread in its block."""
        if self.thread_var is not None:
            return self.thread_var
        kernel = builder.current(_what()).kernel
        if kernel is None:
            raise TraceError(f"{_what()} is only valid inside 'with T.Kernel(...)'", user_span())
        x, y, z = kernel.get_thread_extents()
        number, ty, tz = kernel.get_thread_bindings()
        if y > 1:
            number = number + ty * x
        return number + tz * (x * y) if z > 1 else number

    def extract_thread_binding(
        self, thread_id: Any, is_m_first: bool | None = None
    ) -> tuple[Any, Any, Any]:
        """Lane, and position of the warp along n and along m."""
        warp, rows, columns = thread_id // _WARP, self.block_row_warps, self.block_col_warps
        if self.is_m_first if is_m_first is None else is_m_first:
            return thread_id % _WARP, warp % columns, warp // columns % rows
        return thread_id % _WARP, warp // rows % columns, warp % rows

    def _warp(self, m: Any, n: Any) -> Any:
        """The number of the warp at a position."""
        if self.is_m_first:
            return m * self.block_col_warps + n
        return n * self.block_row_warps + m

    # -- loads ---------------------------------------------------------------------------------
    def ldmatrix_a(self, A_local_buf: Any, A_shared_buf: Any, ki: Any, rk: Any = 0) -> None:
        """Load the warp's rows of A at step ``ki`` of a shared tile (of part ``rk`` of k)."""
        lane, _, warp_m = self.extract_thread_binding(self.get_thread_binding())
        k = rk * self.chunk + ki * self.micro_size_k
        for i in range(self.warp_rows):
            first = warp_m * self.warp_row_tiles + i * self.micro_size_x
            self._load(
                "A", A_local_buf, i * self.local_size_a, A_shared_buf, first, k, lane,
                self.a_transposed, self.row.a_position,
            )  # fmt: skip

    def ldmatrix_b(self, B_local_buf: Any, B_shared_buf: Any, ki: Any, rk: Any = 0) -> None:
        """Load the warp's columns of B at step ``ki`` of a shared tile (of part ``rk`` of k)."""
        lane, warp_n, _ = self.extract_thread_binding(self.get_thread_binding())
        k = rk * self.chunk + ki * self.micro_size_k
        for j in range(self.warp_cols):
            first = warp_n * self.warp_col_tiles + j * self.micro_size_y
            self._load(
                "B", B_local_buf, j * self.local_size_b, B_shared_buf, first, k, lane,
                not self.b_transposed, self._b_position,
            )  # fmt: skip

    def _b_position(self, lane: int, element: int) -> tuple[int, int]:
        """Column and row (along k) of an element of B; columns from 8 on are the second half."""
        half, element = divmod(element, self.row.elements[1])
        row, column = self.row.b_position(lane, element)
        return column + half * self.row.n, row

    def _load(
        self,
        matrix: str,
        registers: Any,
        slot: int,
        shared: Any,
        first: Any,
        k: Any,
        lane: Any,
        k_in_rows: bool,
        position: Callable[[int, int], tuple[int, int]],
    ) -> None:
        """Load one tile: ``first`` row of A or column of B, from step ``k`` on."""
        bits = dtype(self.a_dtype if matrix == "A" else self.b_dtype).bits
        _require_local(registers)
        count = self.local_size_a if matrix == "A" else self.local_size_b
        number = count * bits // 32
        if bits <= 32 and not (k_in_rows and bits != 16) and number in (1, 2, 4):
            # Of B, neighbouring matrices follow k first: the order of a transposed A.
            row, column = ldmatrix_position(
                lane % (8 * number) if number < 4 else lane, bits, k_in_rows == (matrix == "A")
            )
            at = [k + row, first + column] if k_in_rows else [first + row, k + column]
            intrin.get("ptx_ldmatrix").emit(
                str(dtype_of(registers)), k_in_rows, number, ".b16",
                _address(registers, slot), 0, T.address_of(_element(shared, at)), 0,
            )  # fmt: skip
            return
        active = builder.current(_what())
        for element in range(count):
            across, along = _affine(position, lane, element)
            at = [k + along, first + across] if k_in_rows else [first + across, k + along]
            value = _element(shared, at)
            active.emit(T.BufferStore(registers, value, [T.const(slot + element, "int32")]))

    # -- products and stores -------------------------------------------------------------------
    def mma(self, A_local_buf: Any, B_local_buf: Any, C_local_buf: Any, k_inner: Any = 0) -> None:
        """Add the products of the loaded tiles, those of step ``k_inner`` of the registers."""
        row = self.row
        for buffer in (A_local_buf, B_local_buf, C_local_buf):
            _require_local(buffer)
        a_start = k_inner * (self.warp_rows * self.local_size_a)
        b_start = k_inner * (self.warp_cols * self.local_size_b)
        halves = self.micro_size_y // row.n
        for i in range(self.warp_rows):
            for j in range(self.warp_cols * halves):
                intrin.get("ptx_mma").emit(
                    self.accum_dtype, f"m{row.m}n{row.n}k{row.k}", "row", "col", row.a, row.b,
                    row.d,
                    A_local_buf.data, a_start + i * self.local_size_a,
                    B_local_buf.data, b_start + j * row.elements[1],
                    C_local_buf.data, (i * self.warp_cols * halves + j) * row.elements[2],
                    False,
                )  # fmt: skip

    def stmatrix(self, C_local_buf: Any, C_buf: Any, pid_m: Any = None, pid_n: Any = None) -> None:
        """Store the sums.

        Parameters
        ----------
        C_local_buf : local buffer
        C_buf : buffer
            Two dimensions, or four: tiles along m and n, then rows and columns of a tile.
        pid_m, pid_n : int expressions, optional
            The block's position, for a result in global memory; needs two dimensions.

        Raises
        ------
        TraceError
            If ``C_buf`` has another rank.
        """
        _require_local(C_local_buf)
        rank, is_global = len(C_buf.shape), pid_m is not None and pid_n is not None
        if rank not in (2, 4) or (is_global and rank != 2):
            raise TraceError(
                f"{_what()}.stmatrix: the target needs 2 dimensions, or 4 in shared memory, found "
                f"{rank}",
                user_span(),
            )
        lane, warp_n, warp_m = self.extract_thread_binding(self.get_thread_binding())
        x, y = self.micro_size_x, self.micro_size_y
        row0 = pid_m * (self.block_row_warps * self.warp_row_tiles) if is_global else 0
        column0 = pid_n * (self.block_col_warps * self.warp_col_tiles) if is_global else 0
        span, stores = user_span(), []
        for i in range(self.warp_rows):
            for j in range(self.warp_cols):
                tile = warp_m * self.warp_rows + i, warp_n * self.warp_cols + j
                for local_id in range(self.local_size_out):
                    row, column = mma_store_index_map(lane, local_id)
                    at = (
                        [*tile, row, column]
                        if rank == 4
                        else [row0 + tile[0] * x + row, column0 + tile[1] * y + column]
                    )
                    slot = (i * self.warp_cols + j) * self.local_size_out + local_id
                    value = T.BufferLoad(C_local_buf, [T.const(slot, "int32")])
                    if dtype_of(C_buf) != self.accum_dtype:
                        value = value.astype(dtype_of(C_buf))
                    stores.append(T.BufferStore(C_buf, value, at, span))
        builder.current(_what()).emit(unit(T.SeqStmt(stores, span), span))

    def get_store_index_map(self) -> Callable[[Any, Any], tuple[Any, Any]]:
        """``(lane, element) -> (row, column)`` of a tile of results."""
        return mma_store_index_map

    # -- layouts -------------------------------------------------------------------------------
    def make_mma_store_layout(self, local_buf: Any) -> Fragment:
        """The fragment of the block's results: the thread and register of every element.

        Parameters
        ----------
        local_buf : buffer of (block rows, block columns)
        """
        shape = _tile_shape(local_buf)
        x, y = self.micro_size_x, self.micro_size_y

        def forward(i: Any, j: Any) -> tuple[Any, Any]:
            row, column = i % x, j % y
            lane = row % 8 * 4 + column % 8 // 2
            element = column // 8 * (x // 4) + row // 8 * 2 + column % 2
            tile = i % self.warp_row_tiles // x * self.warp_cols + j % self.warp_col_tiles // y
            warp = self._warp(
                i // self.warp_row_tiles % self.block_row_warps,
                j // self.warp_col_tiles % self.block_col_warps,
            )
            return warp * _WARP + lane, tile * self.local_size_out + element

        return Fragment(shape, forward)

    def make_mma_load_layout(self, local_buf: Any, matrix: Literal["A", "B"] = "A") -> Fragment:
        """The fragment of an operand; warps that need the same rows or columns hold copies.

        Parameters
        ----------
        local_buf : buffer
            A as (m, k), or (k, m) if transposed; B as (k, n), or (n, k) if transposed.
        matrix : {"A", "B"}

        Raises
        ------
        TraceError
            For another matrix.
        """
        if matrix not in ("A", "B"):
            raise TraceError(f"{_what()}: expected matrix A or B, found {matrix!r}", user_span())
        is_a = matrix == "A"
        k_in_rows = self.a_transposed if is_a else not self.b_transposed
        copies = self.block_col_warps if is_a else self.block_row_warps
        run, tile = self.row.run, self.micro_size_x if is_a else self.micro_size_y
        of_warp = self.warp_row_tiles if is_a else self.warp_col_tiles
        warps = self.block_row_warps if is_a else self.block_col_warps
        tiles = self.warp_rows if is_a else self.warp_cols
        size = self.local_size_a if is_a else self.local_size_b
        downs = tile // 8 if is_a else 1  # registers of 8 rows that a step along k has

        def forward(i: Any, j: Any, copy: Any = 0) -> tuple[Any, Any]:
            across, along = (j, i) if k_in_rows else (i, j)
            within = along % self.micro_size_k
            lane = across % 8 * 4 + within % (4 * run) // run
            element = within // (4 * run) * downs * run + within % run
            element = element + across % tile // 8 * (run if is_a else self.row.elements[1])
            step = along // self.micro_size_k * tiles + across % of_warp // tile
            own = across // of_warp % warps
            warp = self._warp(own, copy) if is_a else self._warp(copy, own)
            return warp * _WARP + lane, step * size + element

        shape = _tile_shape(local_buf)
        if copies == 1:
            return Fragment(shape, forward)
        return Fragment(
            shape,
            forward_thread_fn=lambda i, j, copy: forward(i, j, copy)[0],
            replicate=copies,
            forward_index_fn=lambda i, j: forward(i, j)[1],
        )


def _what() -> str:
    return "T.TensorCoreIntrinEmitter"


def _affine(
    position: Callable[[int, int], tuple[int, int]], lane: Any, element: int
) -> tuple[Any, Any]:
    """``position`` for a lane that is an expression: row by the quad, the rest by lane in it."""
    across, along = position(0, element)
    per_quad = position(4, element)[0] - across
    per_lane = position(1, element)[1] - along
    return lane // 4 * per_quad + across, lane % 4 * per_lane + along


def _require_local(buffer: Any) -> None:
    if not is_buffer(buffer) or buffer.scope() != "local" or len(buffer.shape) != 1:
        found = f"{buffer.scope()} memory" if is_buffer(buffer) else type(buffer).__name__
        raise TraceTypeError(
            f"{_what()}: registers are one-dimensional T.alloc_local arrays, found {found}",
            user_span(),
        )


def _address(buffer: Any, index: int) -> ir.Expr:
    return T.address_of(T.BufferLoad(buffer, [T.const(index, "int32")]))


def _element(tile: Any, at: list[Any]) -> ir.TensorLoad:
    """Element ``at`` of the last two dimensions of a buffer or region."""
    if is_buffer(tile):
        lead = [T.const(0, "int32")] * (len(tile.shape) - 2)
        return T.BufferLoad(tile, [*lead, *at], user_span())
    if not isinstance(tile, ir.TensorRegion) or len(region_extents(tile)) < 2:
        raise TraceTypeError(
            f"{_what()}: expected a shared tile or a part of one, found {type(tile).__name__}",
            user_span(),
        )
    mins = list(region_mins(tile))
    return T.BufferLoad(tile.source, [*mins[:-2], mins[-2] + at[0], mins[-1] + at[1]], user_span())


def _tile_shape(buffer: Any) -> list[int]:
    shape = [const_int(extent) for extent in buffer.shape]
    sizes = [extent for extent in shape if extent is not None]
    if len(sizes) != 2 or len(shape) != 2:
        raise TraceError(
            f"{_what()}: a layout needs a tile of two constant extents, found {shape}", user_span()
        )
    return sizes
