"""Drawings of layouts: labels, files, and refusals."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tilelang.errors import LayoutError
from tilelang.layout import Fragment, Layout, make_gemm_fragment_8x8
from tilelang.testing import requires_package
from tilelang.tools import plot_fragment_tv, plot_layout

module = sys.modules["tilelang.tools.plot_layout"]
pytestmark = requires_package("matplotlib").marks()

TRANSPOSE = Layout([4, 8], lambda i, j: j * 4 + i)


def drawn(monkeypatch):
    """Labels, colours and map of the last figure."""
    seen = {}
    real = module._draw

    def record(labels, numbers, colormap, *rest, **options):
        seen.update(labels=labels, numbers=numbers, colormap=colormap)
        return real(labels, numbers, colormap, *rest, **options)

    monkeypatch.setattr(module, "_draw", record)
    return seen


def test_input_view_shows_physical_indices(monkeypatch, tmp_path):
    seen = drawn(monkeypatch)
    (path,) = plot_layout(TRANSPOSE, tmp_path, "t", formats="png")
    assert path == tmp_path / "t.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert seen["labels"][1, 2] == "9"
    assert seen["numbers"][1, 2] == 9


def test_output_view_shows_logical_indices_and_gaps(monkeypatch, tmp_path):
    seen = drawn(monkeypatch)
    padded = Layout([2, 3], lambda i, j: i * 4 + j)
    plot_layout(padded, tmp_path, view="output", formats="svg", grid_shape=(1, 7))
    assert list(seen["labels"][0]) == ["0,0", "0,1", "0,2", "", "1,0", "1,1", "1,2"]
    assert seen["numbers"][0, 3] == -1


def test_fragments_show_thread_and_slot(monkeypatch, tmp_path):
    seen = drawn(monkeypatch)
    plot_layout(make_gemm_fragment_8x8(), tmp_path, formats="png")
    assert seen["labels"][1, 3] == "T5\nL1"
    assert seen["colormap"] == "RdPu"


def test_copies_of_an_element(monkeypatch, tmp_path):
    seen = drawn(monkeypatch)
    everywhere = Fragment([2, 2], forward_thread_fn=lambda i, j, rep: rep, replicate=4)
    plot_layout(everywhere, tmp_path, formats="png")
    assert seen["labels"][0, 1] == "T0..3\nL1"


def test_all_formats_and_a_printed_summary(tmp_path, capsys):
    paths = plot_layout(TRANSPOSE, tmp_path / "new", "x", formats="all", verbose=True)
    assert {path.suffix for path in paths} == {".pdf", ".png", ".svg"}
    assert "Layout([4, 8]" in capsys.readouterr().out


def test_thread_view(monkeypatch, tmp_path):
    seen = drawn(monkeypatch)
    figure = plot_fragment_tv(
        make_gemm_fragment_8x8(), tmp_path, apply_idx_fn=lambda i, j: i * 8 + j
    )
    assert seen["labels"].shape == (32, 2)
    assert seen["labels"][5, 1] == "11"
    assert (tmp_path / "fragment.png").exists()
    assert figure.axes


def test_matplotlib_is_loaded_only_to_draw():
    code = "import sys, tilelang.tools.plot_layout; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("layout", "options", "message"),
    [
        (TRANSPOSE, {"formats": "gif"}, "unknown format 'gif'; known are pdf, png, svg and all"),
        (TRANSPOSE, {"grid_shape": (3, 3)}, "3 x 3 does not hold 32 cells"),
        (TRANSPOSE, {"view": "side"}, "view must be 'input' or 'output'"),
        (Layout([512, 512], lambda i, j: i), {}, "262144 cells; at most 65536"),
        (make_gemm_fragment_8x8(), {"view": "output"}, "drawn by plot_fragment_tv"),
    ],
)
def test_what_cannot_be_drawn(tmp_path, layout, options, message):
    with pytest.raises(LayoutError, match=message):
        plot_layout(layout, tmp_path, **options)
