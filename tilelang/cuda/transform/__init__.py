"""Passes that only the CUDA backend needs."""
