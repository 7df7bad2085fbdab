"""Ctrl-C during a compile."""

import contextlib
import os
import signal
import threading

import pytest

from tilelang.jit.interrupt import interruptible


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):  # Python delivers it between bytecodes
        pass


@pytest.fixture(autouse=True)
def handler_is_restored():
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def test_nothing_happens_without_ctrl_c():
    with interruptible():
        pass


def test_ctrl_c_leaves_as_keyboard_interrupt():
    with pytest.raises(KeyboardInterrupt), interruptible():
        press_ctrl_c()


def test_ctrl_c_that_was_turned_into_another_error_is_restored():
    with pytest.raises(KeyboardInterrupt), interruptible():
        try:
            press_ctrl_c()
        except KeyboardInterrupt:
            raise RuntimeError("") from None


def test_ctrl_c_that_was_swallowed_is_raised_at_the_end():
    with (
        pytest.raises(KeyboardInterrupt),
        interruptible(),
        contextlib.suppress(KeyboardInterrupt),
    ):
        press_ctrl_c()


def test_other_errors_pass_unchanged():
    with pytest.raises(ValueError, match="mine"), interruptible():
        raise ValueError("mine")


def test_blocks_nest():
    with pytest.raises(KeyboardInterrupt), interruptible(), interruptible():
        press_ctrl_c()


def test_a_handler_of_the_user_decides():
    seen = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interruptible():
            press_ctrl_c()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert seen == [signal.SIGINT]


def test_other_threads_are_left_alone():
    failures = []

    def run():
        try:
            with interruptible():
                pass
        except BaseException as error:  # noqa: BLE001  (any failure counts)
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failures
