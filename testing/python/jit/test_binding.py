"""Canonical arguments of jit calls."""

import math

import pytest

from tilelang.jit.binding import ArgumentBinder, call_form, token


def factory(m, n=64, *, dtype="float32", tags=(), **options):
    return m, n, dtype, tags, options


def key(*args, **kwargs):
    return ArgumentBinder(factory).bind(args, kwargs).key


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((8,), {}),
        ((8, 64), {}),
        ((), {"m": 8}),
        ((), {"n": 64, "m": 8}),
        ((8,), {"dtype": "float32", "n": 64}),
        ((8,), {"tags": ()}),
    ],
)
def test_every_way_to_write_a_call_has_one_key(args, kwargs):
    assert key(*args, **kwargs) == key(8)


def test_the_second_part_of_a_key_is_empty_without_extra_keywords():
    assert key(8)[1] == ()


def test_keywords_of_a_var_keyword_parameter_are_flattened_in_any_order():
    assert key(8, a=1, b=[2]) == key(8, b=[2], a=1)
    assert [name for name, _ in key(8, b=[2], a=1)[1]] == ["a", "b"]


def test_extra_keywords_are_appended_by_name():
    def plain(a):
        return a

    binding = ArgumentBinder(plain).bind((1,), {"M": 1024})
    assert binding.extras == {"M": 1024}
    assert binding.key[1] == (("M", token(1024)),)


def test_unhashable_defaults_and_equal_explicit_values_share_a_key():
    def with_list(a, sizes=[1, 2], table={"x": [3]}):  # noqa: B006
        return a, sizes, table

    binder = ArgumentBinder(with_list)
    assert binder.bind((1,), {}).key == binder.bind((1, [1, 2]), {"table": {"x": [3]}}).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ((1, 2), [1, 2]),
        ([1], [True]),
        ({"a": 1}, {"a": 2}),
        ({1, 2}, {1, 3}),
        ("float32", b"float32"),
    ],
)
def test_values_that_give_different_programs_have_different_tokens(one, other):
    assert token(one) != token(other)


@pytest.mark.parametrize("value", [math.nan, [1, {"a": {2, 3}}], {"k": (None, "x")}, {4, 5}])
def test_equal_values_have_equal_hashable_tokens(value):
    import copy

    assert {token(value): 1}[token(copy.deepcopy(value))] == 1


def test_parameters_left_out_of_the_key_do_not_count():
    def run(a, block=32):
        return a, block

    binder = ArgumentBinder(run, not_in_key=["a"])
    assert binder.bind((object(),), {}).key == binder.bind((object(), 32), {}).key
    assert binder.bind((1, 64), {}).key != binder.bind((1,), {}).key


def test_a_binding_calls_the_function_with_its_arguments():
    binding = ArgumentBinder(factory).bind((8,), {"dtype": "int8", "x": 1})
    assert binding.call(factory) == (8, 64, "int8", (), {"x": 1})


def test_call_form_tells_spellings_apart_and_types_too():
    assert call_form((1,), {}) == call_form((1,), {})
    assert call_form((1,), {}) != call_form((), {"m": 1})
    assert call_form((1,), {}) != call_form((True,), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {"m": 2}, "multiple values"),
        ((), {}, "missing a required argument"),
        ((1, 2, 3), {}, "too many positional"),
    ],
)
def test_mistakes_are_python_type_errors(args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        key(*args, **kwargs)


@pytest.mark.parametrize("value", [bytearray(b"x"), [bytearray(b"x")], {"a": bytearray(b"x")}])
def test_an_unhashable_value_is_refused(value):
    with pytest.raises(TypeError, match="Unsupported unhashable JIT compile-time cache key value"):
        key(value)
    with pytest.raises(TypeError, match="unhashable"):
        key(8, extra=value)
