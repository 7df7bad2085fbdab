"""Tools around the compiler: drawings of layouts; the doctor is ``python -m tilelang doctor``."""

from tilelang.tools.plot_layout import plot_fragment_tv, plot_layout

__all__ = ["plot_fragment_tv", "plot_layout"]
