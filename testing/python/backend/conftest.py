"""A valid manifest to change one field of, and a scope for registering it."""

import pytest

from tilelang.backend import (
    BackendModule,
    DeviceCodegen,
    ExecutionBackendSpec,
    PassPipeline,
    list_backends,
    register_backend,
    unregister_backend,
)


def _identity(mod, target):
    return mod


@pytest.fixture
def manifest():
    """A function that makes a manifest of kind ``test`` with some fields changed."""

    def make(**changes):
        fields = {
            "name": "unit",
            "target_kinds": ("test",),
            "pipelines": {"test": PassPipeline("test", _identity)},
            "device_codegens": {"test": DeviceCodegen("test", _identity)},
            "execution_backends": (ExecutionBackendSpec("unit"),),
        }
        return BackendModule(**{**fields, **changes})

    return make


@pytest.fixture
def registered():
    """``register_backend`` whose backends are gone after the test."""
    names = []

    def register(module):
        names.append(module.name)
        return register_backend(module)

    yield register
    for name in names:
        if name in list_backends():
            unregister_backend(name)
