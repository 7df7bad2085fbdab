"""The CPU backend: target kinds ``llvm`` and ``c``."""
