"""Reproducible randomness."""

from __future__ import annotations

import random

import numpy as np

__all__ = ["set_random_seed"]


def set_random_seed(seed: int = 42) -> None:
    """Seed Python, numpy and torch (all its devices)."""
    import torch  # seeds its devices too

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
