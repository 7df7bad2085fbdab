"""Cells of op x dtype x shape, made from the op records, run in every way and compared."""
