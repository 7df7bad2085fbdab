"""tilelang.transform.PassContext: nesting, threads, and the split of keys with TVM."""

from __future__ import annotations

import threading

import pytest
import tvm

from tilelang.errors import PassConfigError
from tilelang.transform.pass_config import PassConfigKey
from tilelang.transform.pass_context import PassContext, get_pass_context


def test_inner_context_replaces_the_outer_one():
    with PassContext({"tl.disable_wgmma": True}):
        with PassContext({"tl.enable_fast_math": True}) as inner:
            assert get_pass_context() is inner
            assert dict(inner.config) == {"tl.enable_fast_math": True}
        assert get_pass_context().config == {"tl.disable_wgmma": True}
    assert get_pass_context().config == {}


def test_tvm_sees_only_its_own_keys():
    with PassContext({PassConfigKey.TL_ENABLE_FAST_MATH: True, "tirx.disable_assert": True}):
        config = tvm.transform.PassContext.current().config
        assert dict(config) == {"tirx.disable_assert": True}
    assert "tirx.disable_assert" not in tvm.transform.PassContext.current().config


def test_threads_do_not_share_a_context():
    seen = []
    with PassContext({"tl.enable_fast_math": True}):
        thread = threading.Thread(target=lambda: seen.append(dict(PassContext.current().config)))
        thread.start()
        thread.join()
    assert seen == [{}]


def test_context_is_left_after_an_exception():
    with pytest.raises(KeyError), PassContext({"tl.enable_fast_math": True}):
        raise KeyError
    assert get_pass_context().config == {}


def test_unknown_key_is_refused_before_entering():
    with pytest.raises(PassConfigError, match="unknown pass config 'tl.fast'"):
        PassContext({"tl.fast": True})
