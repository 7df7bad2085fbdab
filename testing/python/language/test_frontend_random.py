"""Random programs mean the same traced (run by the interpreter) and executed by Python itself."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tilelang.interpreter import interpret

SIZE = 8
HEADER = """import tilelang.language as T

Ints = T.Tensor(({size},), T.int32)


@T.prim_func
def traced(A: Ints, B: Ints, n: T.int32):
    with T.Kernel(1):
        x = T.alloc_var(T.int32, 3)
        y = T.alloc_var(T.int32, init=n)
{traced}
        B[0], B[1] = x, y


def executed(A, B, n):
    x = 3
    y = n
    if True:
{executed}
    B[0], B[1] = x, y
"""


VALUES = (
    *("({a} + {b})", "({a} - {b})", "({a} * {b}) % 997", "({a} // 7)", "({a} % 5)"),
    *("min({a}, {b})", "max({a}, {b}, 2)", "abs({a})", "({a} if {c} else {b})", "-({a})"),
    "(({a}) & 12)",
)
CONDITIONS = (
    *("{a} < {b}", "{a} == {b}", "{a} != {b}", "-5 < {a} <= {b}", "not {a} > {b}", "{a} % 2"),
    *("({a} > 0 and {b} > 0)", "({a} > 0 or {b} < 3)", "{a} in (1, {b}, 4)", "True", "0"),
)
STATEMENTS = (
    *("var", "var", "var", "store", "store", "store", "temp", "temp"),
    *("if", "for", "static", "while", "jump", "swap"),
)


class Writer:
    """Writes one random block after another; temporaries are used where they are made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.made = 0

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def atom(self, scope: list[str]) -> str:
        pick = self.random.choice
        choices = [str(self.random.randint(-9, 9)), "x", "y", "n", f"A[{pick(scope)} % {SIZE}]"]
        return pick([*choices, *scope])

    def value(self, scope: list[str], depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.3:
            return self.atom(scope)
        a, b = self.value(scope, depth - 1), self.value(scope, depth - 1)
        form = self.random.choice(VALUES)
        return form.format(a=a, b=b, c=self.condition(scope, depth - 1))

    def condition(self, scope: list[str], depth: int = 1) -> str:
        a, b = self.value(scope, depth), self.value(scope, depth)
        form = self.random.choice(CONDITIONS)
        return form.format(a=a, b=b)

    def statement(self, depth: int, scope: list[str], in_loop: bool, budget: int) -> None:
        kind = self.random.choice(STATEMENTS)
        if kind == "var":
            name, op = self.random.choice("xy"), self.random.choice(["=", "+=", "-="])
            self.put(depth, f"{name} {op} ({self.value(scope)}) % 1000")
        elif kind == "store":
            op = self.random.choice(["=", "+=", "="])
            self.put(
                depth, f"B[{self.random.randint(2, SIZE - 1)}] {op} ({self.value(scope)}) % 1000"
            )
        elif kind == "temp":
            self.made += 1
            self.put(depth, f"t{self.made} = {self.value(scope)}")
            scope.append(f"t{self.made}")
        elif kind == "swap":
            self.put(depth, f"x, y = y, ({self.value(scope)}) % 1000")
        elif kind == "jump" and in_loop:
            self.put(depth, f"if {self.condition(scope)}:")
            self.put(depth + 1, self.random.choice(["break", "continue"]))
        elif budget > 0 and kind in ("if", "for", "static", "while"):
            getattr(self, f"write_{kind}")(depth, scope, in_loop, budget - 1)

    def block(self, depth: int, scope: list[str], in_loop: bool, budget: int) -> None:
        self.put(depth, "pass")
        inner = list(scope)
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth, inner, in_loop, budget)

    def write_if(self, depth: int, scope: list[str], in_loop: bool, budget: int) -> None:
        self.put(depth, f"if {self.condition(scope)}:")
        self.block(depth + 1, scope, in_loop, budget)
        if self.random.random() < 0.5:
            self.put(depth, f"elif {self.condition(scope)}:")
            self.block(depth + 1, scope, in_loop, budget)
        if self.random.random() < 0.5:
            self.put(depth, "else:")
            self.block(depth + 1, scope, in_loop, budget)

    def write_for(self, depth: int, scope: list[str], in_loop: bool, budget: int) -> None:
        self.made += 1
        bounds = self.random.choice(["3", "1, 5", "0, n % 6, 2", "5, 0, -2", "n % 4"])
        self.put(depth, f"for i{self.made} in range({bounds}):")
        self.block(depth + 1, [*scope, f"i{self.made}"], True, budget)

    def write_static(self, depth: int, scope: list[str], in_loop: bool, budget: int) -> None:
        self.made += 1
        self.put(depth, f"for k{self.made} in (2, -1):")
        self.block(depth + 1, [*scope, f"k{self.made}"], False, budget)

    def write_while(self, depth: int, scope: list[str], in_loop: bool, budget: int) -> None:
        self.put(depth, "y = y % 50")
        self.put(depth, "while y < 60:")
        self.put(depth + 1, "y += 7 + abs(y)")
        self.put(depth + 1, f"x = ({self.value(scope)}) % 100")
        if self.random.random() < 0.5:
            self.put(depth + 1, f"if {self.condition(scope)}:")
            self.put(depth + 2, "break")


def program(seed: int) -> str:
    writer = Writer(seed)
    scope = ["n"]
    for _ in range(8):
        writer.statement(2, scope, False, 2)
    body = "\n".join(writer.lines) or "        pass"
    return HEADER.format(size=SIZE, traced=body, executed=body)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", range(30))
def test_traced_equals_executed(seed, tmp_path):
    path = tmp_path / f"program_{seed}.py"
    path.write_text(program(seed))
    module = load(path)
    for n in (0, 5, -3, 11):
        a = torch.tensor([(k * 37 + seed) % 23 - 8 for k in range(SIZE)], dtype=torch.int32)
        b = torch.zeros(SIZE, dtype=torch.int32)
        expected = [0] * SIZE
        module.executed(a.tolist(), expected, n)
        interpret(module.traced, a, b, n)
        assert b.tolist() == expected, f"n = {n}\n{path.read_text()}"
