"""Pass pipelines: running, observing, and reporting what fails."""

import io

import pytest
import tvm
from tvm import ir
from tvm import tirx as T
from tvm.target import Target

from tilelang.backend.pass_pipeline import (
    TARGET,
    DiffObserver,
    DumpObserver,
    PassObserver,
    PassPipeline,
    PassStep,
    TimingObserver,
    TimingReport,
    active_observers,
    neutral,
    observe,
    run_steps,
    tvm_pass,
)
from tilelang.backend.pass_pipeline import pipeline_utils as utils
from tilelang.backend.pass_pipeline.session import configured_observers
from tilelang.env import env
from tilelang.errors import BackendError, LoweringError, SemanticError
from tilelang.transform import PassContext

TEST = Target("test")


def kernel(span=None):
    """A module with one function that stores a constant."""
    buffer = T.decl_buffer((4,), "float32", "A", layout=None)
    func = T.PrimFunc([buffer], T.BufferStore(buffer, 1.0, [0]), span=span)
    return tvm.IRModule({"add": func.with_attr("global_symbol", "add")})


def mark(name):
    """A pass that sets attribute ``name`` of the module."""

    def marked(mod):
        return mod.with_attr(name, 1)

    return neutral(marked, "the test looks for it", name=name)


class Recorder(PassObserver):
    def __init__(self):
        self.events = []

    def before(self, step, mod, target):
        self.events.append(f"before {step.name}")

    def after(self, step, before, after, target, seconds):
        assert seconds >= 0
        self.events.append(f"after {step.name}")

    def finish(self):
        self.events.append("finish")


def test_steps_run_in_order():
    pipeline = PassPipeline("test", steps=[mark("one"), mark("two")])
    mod = pipeline.lower(kernel(), TEST)
    assert list(mod.attrs.keys()) == ["one", "two"]


def test_stock_passes_get_the_target_as_argument():
    step = tvm_pass(T.transform.BindTarget, "passes read it from the function", TARGET)
    assert step.name == "BindTarget"
    mod = run_steps([step], kernel(), TEST)
    assert mod["add"].attrs["target"].kind.name == "test"


def test_a_callable_runs_its_own_list():
    pipeline = PassPipeline("test", lambda mod, target: run_steps([mark("inner")], mod, target))
    recorder = Recorder()
    with observe(recorder):
        assert "inner" in pipeline.lower(kernel(), TEST).attrs
    assert recorder.events == ["before inner", "after inner"]


def test_observers_are_installed_only_inside_the_block():
    outer, inner = Recorder(), Recorder()
    with observe(outer), observe(inner):
        assert active_observers() == (outer, inner)
        run_steps([mark("one")], kernel(), TEST)
    assert active_observers() == ()
    assert outer.events == inner.events == ["before one", "after one"]


def test_timing_lists_every_pass_and_whether_it_changed_something():
    nothing = neutral(lambda mod: mod, "changes nothing", name="nothing")
    timing = TimingObserver(threshold_ms=1e9)
    with observe(timing):
        run_steps([mark("one"), nothing], kernel(), TEST)
    assert [(row.name, row.changed) for row in timing.rows] == [("one", True), ("nothing", False)]
    assert timing.render().endswith("total of 2 passes")
    assert "one" not in timing.render()
    timing.threshold_ms = 0
    assert "ms  one" in timing.render()


def test_dump_writes_the_module_after_each_pass(tmp_path):
    with observe(DumpObserver(tmp_path)):
        run_steps([mark("a/b"), mark("two")], kernel(), TEST)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00_a_b.py", "01_two.py"]
    assert "def add(" in (tmp_path / "01_two.py").read_text()


def test_diff_shows_changed_lines_only():
    def rename(mod):
        return tvm.IRModule({"add": mod["add"].with_attr("marker", "here")})

    steps = [neutral(rename, "a visible change"), neutral(lambda mod: mod, "none", name="none")]
    stream = io.StringIO()
    with observe(DiffObserver(stream)):
        run_steps(steps, kernel(), TEST)
    text = stream.getvalue()
    assert "after rename" in text and "after none" not in text
    assert any(line.startswith("+") and "marker" in line for line in text.splitlines())


def test_configuration_and_environment_install_observers(tmp_path, capsys):
    pipeline = PassPipeline("test", steps=[mark("one")])
    config = {"tl.enable_dump_ir": True, "tl.dump_ir_path": str(tmp_path), "tl.pass_profile": True}
    assert configured_observers("add") == ()
    with PassContext(config=config):
        pipeline.lower(kernel(), TEST)
    assert (tmp_path / "add" / "00_one.py").exists()
    assert "passes of add:" in capsys.readouterr().err


def test_pass_diff_of_the_environment_writes_pages(tmp_path, capsys):
    def rename(mod):
        return tvm.IRModule({"add": mod["add"].with_attr("marker", "here")})

    pipeline = PassPipeline("test", steps=[neutral(rename, "a visible change")])
    with env.scope(TILELANG_PASS_DIFF="both", TILELANG_PASS_DIFF_OUTPUT=tmp_path):
        pipeline.lower(kernel(), TEST)
    assert "marker" in (tmp_path / "add" / "00_rename.html").read_text()
    assert "marker" in capsys.readouterr().err


def test_reports_appear_when_a_pass_fails(capsys):
    pipeline = PassPipeline("test", steps=[mark("one"), neutral(fail, "fails")])
    with PassContext(config={"tl.pass_profile": True}), pytest.raises(LoweringError):
        pipeline.lower(kernel(), TEST)
    assert "ms  one" in capsys.readouterr().err


def test_timing_report_prints_its_title():
    stream = io.StringIO()
    TimingReport("kernel", stream=stream).finish()
    assert stream.getvalue().startswith("passes of kernel:")


def fail(mod):
    raise RuntimeError("index out of range")


def test_failure_names_pass_kernel_and_line():
    span = ir.Span(ir.SourceName("user.py"), 7, 7, 1, 1)
    with pytest.raises(LoweringError, match=r"pass 'fail' failed on add: index out of range") as e:
        run_steps([neutral(fail, "fails")], kernel(span), TEST)
    assert "user.py:7" in str(e.value)
    assert isinstance(e.value.__cause__, RuntimeError)


def test_own_errors_keep_their_class_and_gain_the_line():
    def refuse(mod):
        raise SemanticError("no")

    span = ir.Span(ir.SourceName("user.py"), 7, 7, 1, 1)
    with pytest.raises(SemanticError, match=r"user\.py:7"):
        run_steps([neutral(refuse, "refuses")], kernel(span), TEST)


def test_interrupts_are_not_wrapped():
    def interrupted(mod):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_steps([neutral(interrupted, "Ctrl-C")], kernel(), TEST)


def test_a_step_without_a_reason_is_refused():
    with pytest.raises(BackendError, match="gives no reason"):
        PassStep(lambda mod, target: mod, "  ", "pass")


def test_a_pass_must_return_a_module():
    with pytest.raises(AssertionError, match="returned NoneType"):
        run_steps([neutral(lambda mod: None, "a bug", name="bug")], kernel(), TEST)


def test_pipeline_questions_follow_the_configuration():
    assert utils.allow_vectorize() and not utils.should_force_let_inline()
    config = {
        "tirx.disable_vectorize": True,
        "tl.force_let_inline": True,
        "tl.disable_data_race_check": False,
        "tl.disable_shared_memory_reuse": True,
        "tl.enable_aggressive_shared_memory_merge": True,
        "tl.layout_visualization_enable": True,
        "tl.layout_visualization_formats": "png, svg",
    }
    with PassContext(config=config):
        assert not utils.allow_vectorize()
        assert utils.should_force_let_inline() and utils.should_enable_race_check()
        assert utils.should_disable_shared_memory_reuse() and utils.should_enable_layout_visual()
        assert utils.should_enable_aggressive_merge()
        assert utils.get_layout_visual_formats() == ("png", "svg")
    context = PassContext(config={"tl.layout_visualization_formats": ["all"]})
    assert utils.get_layout_visual_formats(context) == ("txt", "png", "pdf", "svg")
