"""Random programs whose threads exchange data through shared memory, as text.

Every statement reads elements that other threads wrote, under loops, branches and pipelines of any
trip count, so that each needs its barriers in the right places.
"""

from __future__ import annotations

import linecache
import random

__all__ = ["exchange_program", "traced"]

_HEAD = """
import tilelang.language as T

@T.prim_func
def program(
    A: T.Tensor((8, {n}), "int32"), X: T.Tensor(({n},), "int32"), G: T.Tensor((8,), "int32"),
    B: T.Tensor((2, 4, {n}), "int32"),
):
    with T.Kernel(2, threads={threads}) as bx:
        S0 = T.alloc_shared(({n},), "int32")
        S1 = T.alloc_shared(({n},), "int32")
        P0 = T.alloc_shared(({n},), "int32")
        P1 = T.alloc_shared(({n},), "int32")
        F = T.alloc_fragment(({n},), "int32")
        r = T.alloc_fragment((1,), "int32")
        w = T.alloc_var("int32")
        T.copy(A[0, 0:{n}], S0)
        T.copy(A[1, 0:{n}], S1)
        T.copy(A[2, 0:{n}], F)
"""


class _Writer:
    def __init__(self, rng, n):
        self.rng, self.n, self.loops, self.tiles, self.has_while = rng, n, [], 0, False

    def step(self):
        return self.loops[-1] if self.loops else str(self.rng.randrange(3))

    def shared(self):
        return self.rng.choice(["S0", "S1", *["P0", "P1"][: self.tiles]])

    def source(self, i):
        n = self.n
        return self.rng.choice(
            [f"{self.shared()}[{n - 1} - {i}]", f"{self.shared()}[({i} + 3) % {n}]", f"F[{i}]",
             f"{self.shared()}[X[{i}]]", f"{self.shared()}[{i}]", f"A[3, {i}]",
             f"{self.shared()}[0]"]
        )  # fmt: skip

    def leaf(self):
        n, kind = self.n, self.rng.randrange(11)
        target = self.rng.choice(["S0", "S1"])
        loop = f"for i in T.Parallel({n}):"
        if kind == 0:
            other = {"S0": "S1", "S1": "S0"}[target]
            read = self.rng.choice([f"{other}[{n - 1} - i]", f"{other}[X[i]]"])
            return [loop, f"    {target}[i] = {read} + {self.step()}"]
        if kind == 1:
            return [loop, f"    {target}[i] = {target}[i] + {self.step()}"]
        if kind == 2:
            return [loop, f"    F[i] = {self.source('i')} - {self.source('i')}"]
        if kind == 3:
            return [loop, f"    {target}[X[i]] = F[i] + {self.step()}"]
        if kind == 4:
            return [f"T.copy({target}, F)"]
        if kind == 5:
            return [f"T.copy(F, {target})"]
        if kind == 6:
            return [loop, f"    B[bx, {self.rng.randrange(4)}, i] = {self.source('i')}"]
        if kind == 7:
            return [f"{target}[{self.rng.randrange(n)}] = {self.shared()}[{n - 1}] + 1"]
        if kind == 8:
            return ["T.reduce_sum(F, r, dim=0)", loop, f"    {target}[i] = r[0] + i"]
        if kind == 9:
            return [f"T.copy(A[{self.rng.randrange(4)}, 0:{n}], {target})"]
        return [f"T.reduce_max({target}, r, dim=0)", loop, "    F[i] = F[i] + r[0]"]

    def condition(self):
        return self.rng.choice(
            [f"G[{self.rng.randrange(8)}] > 0", "bx == 0", f"S0[{self.rng.randrange(self.n)}] > 0",
             f"{self.step()} % 2 == 0"]
        )  # fmt: skip

    def block(self, count, depth):
        lines = []
        for _ in range(count):
            lines += self.compound(depth) if depth and self.rng.random() < 0.35 else self.leaf()
        return lines

    def compound(self, depth):
        kind, trips = self.rng.randrange(5), self.rng.randrange(4)
        if kind == 0 or (kind == 2 and self.loops):
            lines = [f"if {self.condition()}:", *_deeper(self.block(2, depth - 1))]
            if self.rng.random() < 0.4:
                lines += ["else:", *_deeper(self.block(1, depth - 1))]
            return lines
        if kind == 1 and not self.has_while:
            self.has_while = True
            lines = ["w = 0", f"while w < {trips}:", *_deeper(self.block(2, 0)), "    w = w + 1"]
            self.has_while = False
            return lines
        var = f"k{len(self.loops)}"
        if kind == 2:
            return self.pipeline(var, trips)
        self.loops.append(var)
        lines = [f"for {var} in T.serial({trips}):", *_deeper(self.block(2, depth - 1))]
        self.loops.pop()
        return lines

    def pipeline(self, var, trips):
        n, stages = self.n, self.rng.randrange(1, 5)
        tiles = self.rng.choice([1, 2])
        lines = [f"for {var} in T.Pipelined({trips}, num_stages={stages}):"]
        lines += [f"    T.copy(A[{var} + {t}, 0:{n}], P{t})" for t in range(tiles)]
        self.loops.append(var)
        self.tiles = tiles
        lines += _deeper(self.block(3, 0))
        self.tiles = 0
        self.loops.pop()
        return lines


def _deeper(lines):
    return ["    " + line for line in lines]


def exchange_program(seed):
    """The text of a program, and its number of elements."""
    rng = random.Random(seed)
    n, threads = rng.choice([(64, 64), (40, 32), (128, 64), (96, 48), (65, 128)])
    writer = _Writer(rng, n)
    lines = writer.block(5, 2)
    lines += [f"for i in T.Parallel({n}):", f"    B[bx, 0, i] = S0[{n - 1} - i]"]
    lines += [f"for i in T.Parallel({n}):", f"    B[bx, 1, i] = S1[{n - 1} - i] + F[i]"]
    body = "\n".join(_deeper(_deeper(lines)))
    return _HEAD.format(n=n, threads=threads) + body + "\n", n


def traced(text, name):
    """The function ``program`` that ``text`` defines; its lines can be looked up."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {}
    exec(compile(text, name, "exec"), space)
    return space["program"]
