"""Thread programs on the CPU: the threads of a block become loops split where threads meet.

A program that names a thread index, or uses votes, shuffles or barriers, runs all threads of a
block on one core. Everything between two meeting points becomes one loop over the threads;
per-thread storage gets a leading thread dimension.
"""

from tilelang.cpu.transform.threads.split import split_thread_program

__all__ = ["split_thread_program"]
