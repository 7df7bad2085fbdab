"""Tools around the compiler. Import the one you need; none is loaded with the package.

* :mod:`tilelang.tools.doctor`: what works on this machine (``python -m tilelang doctor``).
* :mod:`tilelang.tools.plot_layout`: draw layouts and fragments.
"""
