"""Pass configurations: keys, types, deprecation, and what TVM gets to see."""

from __future__ import annotations

import warnings

import pytest
import tvm

from tilelang.env import env
from tilelang.errors import PassConfigError
from tilelang.transform.pass_config import (
    PassConfigKey,
    normalize_pass_configs,
    pass_flag,
    pass_option,
    tvm_pass_configs,
)


def test_keys_become_plain_strings():
    configs = normalize_pass_configs(
        {PassConfigKey.TL_ENABLE_FAST_MATH: True, "tl.disable_wgmma": False}
    )
    assert configs == {"tl.enable_fast_math": True, "tl.disable_wgmma": False}
    assert all(type(key) is str for key in configs)


def test_none_and_empty_are_the_empty_configuration():
    assert normalize_pass_configs(None) == normalize_pass_configs({}) == {}


def test_keys_and_strings_are_the_same_mapping_key():
    key = PassConfigKey.TL_DUMP_IR_DIR
    assert {key: 1}["tl.dump_ir_path"] == 1
    assert {"tl.dump_ir_path": 1}[key] == 1
    assert f"{key}" == str(key) == "tl.dump_ir_path"


@pytest.mark.parametrize("key", [key for key in PassConfigKey if bool in key.kinds])
def test_every_switch_takes_both_values(key):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for value in (True, False):
            assert normalize_pass_configs({key: value})[key] is value


def test_default_shows_when_a_key_is_absent():
    assert pass_option({}, PassConfigKey.TL_CONFIG_INDEX_BITWIDTH) == 32
    assert pass_option(None, PassConfigKey.TL_DEVICE_COMPILE_FLAGS) is None
    assert pass_flag({}, PassConfigKey.TL_ENABLE_ASYNC_COPY)
    assert not pass_flag({"tl.enable_async_copy": False}, PassConfigKey.TL_ENABLE_ASYNC_COPY)


def test_simplify_options_are_completed():
    options = pass_option(
        normalize_pass_configs({"tl.Simplify": {"convert_boolean_to_and_of_ors": True}}),
        PassConfigKey.TL_SIMPLIFY,
    )
    assert options["convert_boolean_to_and_of_ors"] is True
    assert options["enable_simplify_let_inline"] is True
    assert len(options) == 6


def test_compile_flags_as_text_or_list():
    key = PassConfigKey.TL_DEVICE_COMPILE_FLAGS
    assert normalize_pass_configs({key: "-O3 -g"})[key] == "-O3 -g"
    assert normalize_pass_configs({key: ("-O3", "-g")})[key] == ["-O3", "-g"]


def test_environment_fills_the_cost_model_and_the_race_check():
    with env.scope(TILELANG_LAYOUT_COST_MODEL="io-aware", TILELANG_ENABLE_DATA_RACE_CHECK="1"):
        configs = normalize_pass_configs({})
        assert configs == {"tl.layout_cost_model": "io-aware", "tl.disable_data_race_check": False}
        explicit = normalize_pass_configs({"tl.layout_cost_model": "register-count"})
        assert explicit["tl.layout_cost_model"] == "register-count"


def test_only_tvm_options_reach_tvm():
    configs = normalize_pass_configs(
        {
            PassConfigKey.TL_ENABLE_FAST_MATH: True,
            PassConfigKey.TIR_DISABLE_VECTORIZE: True,
            PassConfigKey.TIR_SIMPLIFY: {"transitively_prove_inequalities": True},
            PassConfigKey.TL_SIMPLIFY: {"convert_boolean_to_and_of_ors": True},
            "tirx.UnrollLoop": {"auto_max_step": 4},
        }
    )
    for_tvm = tvm_pass_configs(configs)
    assert set(for_tvm) == {"tirx.disable_vectorize", "tirx.StmtSimplify", "tirx.UnrollLoop"}
    with tvm.transform.PassContext(config=for_tvm) as context:
        assert context.config["tirx.UnrollLoop"].auto_max_step == 4
        simplify = context.config["tirx.StmtSimplify"]
        assert simplify.transitively_prove_inequalities and simplify.convert_boolean_to_and_of_ors


def test_older_prefix_of_tvm_options():
    assert normalize_pass_configs({"tir.disable_vectorize": True}) == {
        "tirx.disable_vectorize": True
    }


def test_deprecated_keys_warn_and_are_kept():
    with pytest.warns(DeprecationWarning, match="disable_tma=True") as caught:
        configs = normalize_pass_configs({PassConfigKey.TL_DISABLE_TMA_LOWER: True})
    assert configs == {"tl.disable_tma_lower": True}
    assert caught[0].filename == __file__


def test_options_without_counterpart_warn():
    with pytest.warns(DeprecationWarning, match="enable_simplify_let_inline.*no effect") as caught:
        normalize_pass_configs({"tl.Simplify": {"enable_simplify_let_inline": False}})
    assert caught[0].filename == __file__


def test_retired_keys_warn_and_are_dropped():
    with pytest.warns(DeprecationWarning, match="no effect"):
        assert normalize_pass_configs({"tl.disable_fast_math": True}) == {}


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"tl.enable_fastmath": True}, "did you mean tl.enable_fast_math"),
        ({"zzz": 1}, "unknown pass config 'zzz'; see tilelang.PassConfigKey"),
        ({3: True}, "is a string or PassConfigKey, found int"),
        ({"tl.enable_fast_math": 1}, "must be bool, found int 1"),
        ({"tl.enable_fast_math": None}, "must be bool, found NoneType"),
        ({"tl.config_index_bitwidth": True}, "must be int, found bool"),
        ({"tl.config_index_bitwidth": 48}, "must be one of 32, 64; found 48"),
        ({"tl.ptxas_register_usage_level": 11}, "must be one of 0, 1"),
        ({"tl.layout_cost_model": "fastest"}, "one of io-aware, register-count"),
        ({"tl.pass_profile_threshold_ms": -1.0}, "finite non-negative"),
        ({"tl.Simplify": {"enable_let_inline": True}}, "did you mean enable_simplify_let_inline"),
        ({"tl.Simplify": {"enable_simplify_let_inline": "no"}}, "must be bool, found str"),
        ({"enable_simplify_let_inline": False}, "is an option of 'tl.Simplify'"),
        ([("tl.enable_fast_math", True)], "must be a mapping"),
    ],
)
def test_mistakes_are_named(configs, message):
    with pytest.raises(PassConfigError, match=message):
        normalize_pass_configs(configs)
