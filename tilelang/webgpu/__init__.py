"""The WebGPU backend: target kind ``webgpu``."""
