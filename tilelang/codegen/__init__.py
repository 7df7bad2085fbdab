"""Source printers shared by the backends that generate C-like text."""

from tilelang.codegen.c_family import CFamilyPrinter, Dialect

__all__ = ["CFamilyPrinter", "Dialect"]
