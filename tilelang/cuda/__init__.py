"""The CUDA backend and its CuTe DSL variant: target kind ``cuda``."""
