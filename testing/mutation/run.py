"""Run the kernels with a bug planted, each bug in a process of its own.

A bug may write where it should not, crash or never end; the process keeps that from the others.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import multiprocessing.connection
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from testing.fuzz.execute import compare, execute
from testing.mutation.edit import Mutation, planted
from testing.mutation.registry import expected, kernels, names
from tilelang.env import env

__all__ = ["Verdict", "baseline", "difference", "run_mutation", "run_mutations"]

_SECONDS = 60.0  # a mutation that takes longer hangs
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation: the kernel that noticed it and how, or None if none did."""

    mutation: Mutation
    kernel: str | None
    reason: str = ""

    @property
    def killed(self) -> bool:
        """Whether a kernel noticed."""
        return self.kernel is not None


def difference(name: str, how: str = "llvm") -> str | None:
    """How the compiled kernel differs from the interpreter, or its error; None if it agrees."""
    try:
        return compare(expected(name), execute(kernels(name), how))
    except Exception as error:  # noqa: BLE001  any error is noticed
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def baseline() -> dict[str, str]:
    """The kernels that disagree without any mutation, and how. There should be none."""
    found = {
        f"{name} ({how})": difference(name, how) for how in ("llvm", "cuda") for name in names(how)
    }
    return {name: text for name, text in found.items() if text is not None}


def run_mutation(mutation: Mutation, thorough: bool = True) -> Verdict:
    """Plant ``mutation`` and run kernels until one notices.

    Parameters
    ----------
    thorough : bool
        Try all kernels, not only those expected to notice.
    """
    order = list(mutation.kernels)
    if thorough:
        order += [name for name in names(mutation.how) if name not in order]
    for name in order:  # before the bug is there
        expected(name)
    with planted(mutation):
        pass  # a stale mutation is reported from here
    receiver, sender = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_child, args=(mutation, order, sender))
    child.start()
    sender.close()
    try:
        return _listen(mutation, child, receiver)
    finally:
        child.kill()
        child.join()


def _child(
    mutation: Mutation, order: list[str], sender: multiprocessing.connection.Connection
) -> None:
    """Tell the kernel that is about to run, and what was different about it."""
    torch.set_num_threads(1)  # a forked process has none of its parent's threads
    faulthandler.disable()  # crashes are expected, and reported
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with env.scope(TILELANG_NUM_THREADS="1"), planted(mutation):
        for name in order:
            sender.send((name, None))
            found = difference(name, mutation.how)
            if found is not None:
                sender.send((name, found))
                return
    sender.send((None, ""))


def _listen(
    mutation: Mutation,
    child: multiprocessing.process.BaseProcess,
    receiver: multiprocessing.connection.Connection,
) -> Verdict:
    running: str | None = None
    while receiver.poll(_SECONDS):
        try:
            running, found = receiver.recv()
        except EOFError:
            child.join()
            code = child.exitcode or 0
            if running is None or code >= 0:
                raise RuntimeError(f"{mutation.name}: the process ended with {code}") from None
            return Verdict(mutation, running, f"crashes: {signal.Signals(-code).name}")
        if running is None or found is not None:
            return Verdict(mutation, running, found or "")
    return Verdict(mutation, running, f"does not end in {_SECONDS:.0f} s")


def run_mutations(mutations: Iterable[Mutation], thorough: bool = True) -> Iterator[Verdict]:
    """The verdict of each mutation, as it is found."""
    difference(names()[0])  # the compilers load once, here; nothing is launched in parallel
    difference(names("cuda")[0], "cuda")
    for mutation in mutations:
        yield run_mutation(mutation, thorough)
