"""Drawing layouts: which element lies where, and which thread holds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tilelang.errors import LayoutError
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_expr import IntArray
from tilelang.layout.layout import Layout

__all__ = ["plot_fragment_tv", "plot_layout"]

_FORMATS = ("pdf", "png", "svg")
_MAX_CELLS = 1 << 16


def plot_layout(
    layout: Layout,
    save_directory: str | Path = "./tmp",
    name: str = "layout",
    colormap: str | None = None,
    verbose: bool = False,
    formats: str | Sequence[str] = "pdf",
    view: Literal["input", "output"] = "input",
    grid_shape: tuple[int, int] | None = None,
) -> list[Path]:
    """Draw a layout or fragment as a grid of cells.

    Parameters
    ----------
    layout : Layout or Fragment
        A cell of a fragment is coloured by its thread and labelled ``T<thread> / L<slot>``; a
        cell of another layout by its physical index.
    save_directory, name : str
        Files are ``<save_directory>/<name>.<format>``; the folder is created.
    colormap : str, optional
        A matplotlib colour map; ``"RdPu"`` for fragments and ``"Spectral"`` otherwise.
    verbose : bool
        Also print the layout and the files written.
    formats : str or sequence of str
        Some of ``pdf``, ``png``, ``svg``, separated by commas, or ``all``.
    view : {"input", "output"}
        Lay cells out by logical index, labelled with the physical one, or the other way round.
    grid_shape : (int, int), optional
        Rows and columns of the grid; by default the last dimension is a row.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    LayoutError
        If the layout is too large to draw, a format is unknown, or the grid does not fit.
    """
    cells = _cells(layout, view)
    rows, columns = grid_shape or _grid_of(cells.shape)
    if rows * columns != cells.size:
        raise LayoutError(f"a grid of {rows} x {columns} does not hold {cells.size} cells")
    labels = np.array([_label(cell) for cell in cells.flat], dtype=object)
    numbers = np.array([-1 if cell is None else cell[0] for cell in cells.flat])
    is_fragment = isinstance(layout, Fragment)
    figure = _draw(
        labels.reshape(rows, columns),
        numbers.reshape(rows, columns),
        colormap or ("RdPu" if is_fragment else "Spectral"),
        title=f"{name}: {layout.get_input_shape()} {view} view",
    )
    return _save(figure, layout, Path(save_directory), name, formats, verbose)


def plot_fragment_tv(
    frag: Fragment,
    save_directory: str | Path | None = None,
    name: str = "fragment",
    apply_idx_fn: Callable[..., Any] | None = None,
    colormap: str = "RdPu",
    item_scale: float = 0.7,
    formats: str | Sequence[str] = "png",
    dpi: int = 150,
) -> Any:
    """Draw what every thread holds: a row per thread, a column per slot.

    Parameters
    ----------
    frag : Fragment
    save_directory : str, optional
        Where to write ``<name>.<format>``; without it nothing is written.
    apply_idx_fn : callable, optional
        Maps the logical index (one argument per dimension) to the text of a cell; by default the
        index itself.
    item_scale : float
        Size of a cell in inches.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, for notebooks.
    """
    slots = int(np.prod(frag.get_output_shape()))
    threads = frag.get_thread_size()
    _require_drawable(slots * threads, frag)
    labels = np.full((threads, slots), "", dtype=object)
    numbers = np.full((threads, slots), -1)
    extents = frag.get_output_shape()
    table, owners = frag.table(), frag.thread_table()
    for position, index in enumerate(np.ndindex(*frag.get_input_shape())):
        slot = int(np.ravel_multi_index([int(row[index]) for row in table], extents))
        text = str(apply_idx_fn(*index)) if apply_idx_fn is not None else _tuple(index)
        for copy in range(frag.replicate_size):
            thread = int(owners[copy][index])
            labels[thread, slot] = text
            numbers[thread, slot] = position
    figure = _draw(labels, numbers, colormap, f"{name}: threads x slots", item_scale)
    if save_directory is not None:
        _save(figure, frag, Path(save_directory), name, formats, False, dpi)
    return figure


_Cell = tuple[int, str]


def _cells(layout: Layout, view: str) -> Any:
    """An object array of ``(colour number, label)`` in the shape of the view, None for gaps."""
    if view not in ("input", "output"):
        raise LayoutError(f"view must be 'input' or 'output', found {view!r}")
    shape = layout.get_input_shape()
    physical = layout.get_output_shape()
    _require_drawable(int(np.prod(shape if view == "input" else physical)), layout)
    table = layout.table()
    if view == "input":
        cells: Any = np.empty(shape, dtype=object)
        for index in np.ndindex(*shape):
            place = tuple(int(row[index]) for row in table)
            cells[index] = _cell_of(layout, index, place)
        return cells
    if isinstance(layout, Fragment):
        raise LayoutError("the output view of a fragment is drawn by plot_fragment_tv")
    cells = np.empty(physical, dtype=object)
    for position, index in enumerate(np.ndindex(*shape)):
        cells[tuple(int(row[index]) for row in table)] = (position, _tuple(index))
    return cells


def _cell_of(layout: Layout, index: tuple[int, ...], place: tuple[int, ...]) -> _Cell:
    if isinstance(layout, Fragment):
        owners = [int(table[index]) for table in layout.thread_table()]
        shown = str(owners[0]) if len(owners) == 1 else f"{owners[0]}..{owners[-1]}"
        return owners[0], f"T{shown}\nL{_tuple(place)}"
    number = int(np.ravel_multi_index(place, layout.get_output_shape()))
    return number, _tuple(place)


def _tuple(index: Sequence[int]) -> str:
    return str(index[0]) if len(index) == 1 else ",".join(map(str, index))


def _label(cell: _Cell | None) -> str:
    return "" if cell is None else cell[1]


def _grid_of(shape: tuple[int, ...]) -> tuple[int, int]:
    return int(np.prod(shape[:-1], dtype=np.int64)), shape[-1]


def _require_drawable(cells: int, layout: Layout) -> None:
    if cells > _MAX_CELLS:
        raise LayoutError(f"{layout} has {cells} cells; at most {_MAX_CELLS} can be drawn")


def _draw(
    labels: Any, numbers: IntArray, colormap: str, title: str, item_scale: float = 0.7
) -> Any:
    import matplotlib as mpl  # optional and slow
    from matplotlib.figure import Figure

    rows, columns = labels.shape
    figure = Figure(figsize=(max(columns * item_scale, 3), max(rows * item_scale, 2)))
    axes = figure.add_subplot()
    shade = mpl.colormaps[colormap].with_extremes(under="white")
    axes.pcolormesh(
        numbers, cmap=shade, vmin=0, vmax=max(int(numbers.max()), 1), edgecolors="black",
        linewidth=0.5, alpha=0.7,
    )  # fmt: skip
    for row, column in np.ndindex(rows, columns):
        axes.text(
            column + 0.5, row + 0.5, labels[row, column], ha="center", va="center",
            fontsize=9 * item_scale,
        )  # fmt: skip
    axes.set_xticks(np.arange(columns) + 0.5, labels=[str(column) for column in range(columns)])
    axes.set_yticks(np.arange(rows) + 0.5, labels=[str(row) for row in range(rows)])
    axes.xaxis.tick_top()
    axes.invert_yaxis()
    axes.set_title(title)
    return figure


def _save(
    figure: Any,
    layout: Layout,
    folder: Path,
    name: str,
    formats: str | Sequence[str],
    verbose: bool,
    dpi: int = 150,
) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix in _checked_formats(formats):
        path = folder / f"{name}.{suffix}"
        figure.savefig(path, bbox_inches="tight", dpi=dpi)
        written.append(path)
    if verbose:
        print(layout, *written, sep="\n")  # noqa: T201  (asked for)
    return written


def _checked_formats(formats: str | Sequence[str]) -> list[str]:
    asked = formats.split(",") if isinstance(formats, str) else list(formats)
    names = [name.strip().lower() for name in asked]
    if "all" in names:
        return list(_FORMATS)
    for name in names:
        if name not in _FORMATS:
            raise LayoutError(f"unknown format {name!r}; known are {', '.join(_FORMATS)} and all")
    return names
