"""The ROCm backend: target kind ``hip``."""
