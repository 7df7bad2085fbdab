"""Every kernel of these tests runs with the checks of the emulator on."""

from __future__ import annotations

import pytest

from tilelang.env import env


@pytest.fixture(autouse=True)
def _checked():
    with env.scope(TILELANG_EMULATOR_CHECKS="race,bounds,uninit"):
        yield
