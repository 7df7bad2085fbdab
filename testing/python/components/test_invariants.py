"""Invariants of the IR levels: each has a failing sample; the observer names pass and level."""

from __future__ import annotations

import pytest
import tvm
from tvm import ir
from tvm import tirx as T

import tilelang.ir.op  # noqa: F401  (registers the tile operations)
from tilelang.backend.pass_pipeline import PassStep, neutral, run_steps
from tilelang.instrumentation import BrokenInvariant, IRLevel, LevelObserver, check_level, observe

TARGET = tvm.target.Target("llvm")


def buffer(name, shape=(4, 4), **options):
    return T.decl_buffer(shape, "float32", name, **{"layout": None, **options})


def module(*params, body=None):
    func = T.PrimFunc(list(params), body if body is not None else T.Evaluate(0))
    return tvm.IRModule({"f": func.with_attr("global_symbol", "f")})


def tile_op(a):
    call = ir.Call(ir.Op.get("tl.tileop.fill"), [a[0:4, 0:4]], ret_ty="void")
    return T.Evaluate(call)


def flat_store(a):
    return T.BufferStore(a, a[0] + 1.0, [1])


def test_good_samples_of_every_level():
    a, flat = buffer("a"), buffer("b", (16,))
    check_level(module(a, body=tile_op(a)), IRLevel.TRACED)
    check_level(module(a, body=T.BufferStore(a, 0.0, [1, 1])), IRLevel.LOOPS)
    check_level(module(flat, body=flat_store(flat)), IRLevel.STORAGE)
    final = T.transform.BindTarget(TARGET)(module(flat, body=flat_store(flat)))
    check_level(final, IRLevel.CODEGEN)


def unbound_loop():
    return T.For(T.Var("i", "int32"), 0, 4, T.ForKind.THREAD_BINDING, T.Evaluate(0))


@pytest.mark.parametrize(
    ("level", "make", "message"),
    [
        (IRLevel.TRACED, lambda a: module(a, body=T.Evaluate(T.Var("n", "int32"))), "well formed"),
        (IRLevel.TRACED, lambda a: module(buffer("d", layout="default")), "TVM layout"),
        (IRLevel.TRACED, lambda a: module(a, body=unbound_loop()), "names no axis: i"),
        (IRLevel.LOOPS, lambda a: module(a, body=tile_op(a)), "a tile operation is left"),
        (
            IRLevel.STORAGE,
            lambda a: module(a, body=T.BufferStore(a, 0.0, [1, 1])),
            "a store is not flat",
        ),
        (IRLevel.STORAGE, lambda a: module(a, body=T.Evaluate(a[0, 0])), "a load is not flat"),
        (IRLevel.CODEGEN, lambda a: module(a), "a function has no target"),
    ],
)
def test_bad_samples(level, make, message):
    with pytest.raises(BrokenInvariant, match=message):
        check_level(make(buffer("a")), level)


def identity(mod):
    return mod


def test_the_observer_follows_the_levels():
    a = buffer("a", (16,))
    steps = [
        neutral(identity, "first", name="first", establishes=IRLevel.LOOPS),
        neutral(identity, "second", name="second", establishes=IRLevel.STORAGE),
    ]
    with observe(LevelObserver()):
        run_steps(steps, module(a, body=flat_store(a)), TARGET)
        run_steps(steps, module(a, body=flat_store(a)), TARGET)


def test_the_observer_names_pass_and_level():
    a = buffer("a")
    steps = [neutral(identity, "lowers nothing", name="lazy", establishes=IRLevel.LOOPS)]
    with (
        observe(LevelObserver()),
        pytest.raises(BrokenInvariant, match="result of pass 'lazy' breaks level LOOPS: a tile"),
    ):
        run_steps(steps, module(a, body=tile_op(a)), TARGET)


def test_the_observer_checks_the_input():
    with observe(LevelObserver()), pytest.raises(BrokenInvariant, match="input of pass 'lazy'"):
        run_steps(
            [neutral(identity, "x", name="lazy")],
            module(buffer("d", layout="default")),
            TARGET,
        )


def test_levels_only_rise():
    steps = [
        neutral(identity, "up", name="up", establishes=IRLevel.STORAGE),
        neutral(identity, "down", name="down", establishes=IRLevel.LOOPS),
    ]
    with observe(LevelObserver()), pytest.raises(BrokenInvariant, match="'down' establishes"):
        run_steps(steps, module(), TARGET)


def test_passes_do_not_edit_their_argument():
    def edit(mod, target):
        mod.update_func(mod.get_global_var("f"), T.PrimFunc([], T.Evaluate(1)))
        return tvm.IRModule(dict(mod.functions))

    with observe(LevelObserver()), pytest.raises(BrokenInvariant, match="'edit' changed its"):
        run_steps([PassStep(edit, "bad manners")], module(), TARGET)
