"""The fake driver, built once."""

import pytest
from fake_cuda_driver import FakeDriver

from tilelang.env import env


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory):
    return FakeDriver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(fake_library):
    """The fake driver in place of the real one, with a clean record."""
    fake_library.reset()
    with env.scope(TILELANG_CUDA_DRIVER=fake_library.path):
        yield fake_library
