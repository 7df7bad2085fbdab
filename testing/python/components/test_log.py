"""The package's logger: levels, and where its records go."""

import io
import logging
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr

import pytest
from tqdm import tqdm

import tilelang
from tilelang.utils import log

LOGGER = logging.getLogger("tilelang")


@pytest.fixture(autouse=True)
def level_stays():
    level = LOGGER.level
    yield
    LOGGER.setLevel(level)


@contextmanager
def root_handlers(*handlers):
    """Only these handlers at the root logger, pytest's own set aside; yields what stderr gets."""
    root, stderr = logging.getLogger(), io.StringIO()
    before, root.handlers = root.handlers, list(handlers)
    try:
        with redirect_stderr(stderr):
            yield stderr
    finally:
        root.handlers = before


@pytest.mark.parametrize(
    ("level", "number"),
    [("DEBUG", 10), ("info", 20), ("Warning", 30), ("ERROR", 40), (15, 15), (logging.INFO, 20)],
)
def test_levels_by_name_and_number(level, number):
    tilelang.set_log_level(level)
    assert LOGGER.level == number


@pytest.mark.parametrize("level", ["LOUD", -1, True, None, 1.5])
def test_unknown_levels_are_refused(level):
    before = LOGGER.level
    with pytest.raises(ValueError, match="a log level is DEBUG"):
        tilelang.set_log_level(level)
    assert LOGGER.level == before


def test_records_from_the_level_on_are_written():
    tilelang.set_log_level("INFO")
    with root_handlers() as stderr:
        logging.getLogger("tilelang.jit").info("compiling kernel %s", "add")
        logging.getLogger("tilelang.jit").debug("not this")
    (line,) = stderr.getvalue().splitlines()
    assert line.endswith("[tilelang.jit:INFO] compiling kernel add")


def test_a_program_with_its_own_logging_gets_each_record_once():
    own = io.StringIO()
    with root_handlers(logging.StreamHandler(own)) as stderr:
        LOGGER.warning("once")
    assert own.getvalue() == "once\n" and stderr.getvalue() == ""


def test_a_progress_bar_stays_whole():
    tilelang.set_log_level("INFO")
    with (
        root_handlers() as stderr,
        tqdm(total=2, file=stderr, desc="bar", ascii=True, mininterval=0) as bar,
    ):
        bar.update()
        LOGGER.info("between")
    between = next(t for t in stderr.getvalue().split("\n") if "between" in t)
    assert "bar" not in between.rpartition("\r")[2]


def test_the_handler_is_there_once():
    before = len(LOGGER.handlers)
    log.install_handler()
    assert len(LOGGER.handlers) == before >= 1


def test_by_default_only_warnings_show():
    program = (
        "import logging, tilelang; log = logging.getLogger('tilelang.cache');"
        "log.info('quiet'); log.warning('heard')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "heard" in run.stderr and "quiet" not in run.stderr
