"""Passes that more than one backend uses, and the configuration they read."""

from tilelang.transform.pass_config import PassConfigKey, normalize_pass_configs
from tilelang.transform.pass_context import PassContext, get_pass_context

__all__ = ["PassConfigKey", "PassContext", "get_pass_context", "normalize_pass_configs"]
