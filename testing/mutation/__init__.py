"""Planted bugs in our own passes and operation bodies, and the kernels that must notice them."""
