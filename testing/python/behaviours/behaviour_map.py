"""Reading the behaviour reference and the map of it."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:  # what pytest brings with it there
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
MAP = ROOT / "testing" / "behaviours.toml"
REFERENCE = ROOT.parent / "shared" / "reference" / "upstream-behaviours.md"


def read_map() -> dict:
    """``testing/behaviours.toml``."""
    with MAP.open("rb") as file:
        return tomllib.load(file)


def statements(text: str) -> dict[str, str]:
    """What a reference says, by place: ``"6.3"`` is the third bullet of section 6.

    Rows of the tables of helpers count like bullets; ``"testing.1"`` and ``"modules.1"`` are the
    first of the two tables. So do sentences between the tables.
    """
    found: dict[str, str] = {}
    section, number, in_table = "", 0, False
    for line in text.splitlines():
        heading = re.match(r"### (?:(\d+)\. |(tilelang\.testing)|(Other helper modules))", line)
        if heading:
            section = heading[1] or ("testing" if heading[2] else "modules")
            number, in_table = 0, False
            continue
        if not section or line.startswith("#") or set(line) <= set("|- "):
            in_table = in_table and bool(line)
            continue
        if line.startswith("|") and not in_table:
            in_table = True  # the row of column names
            continue
        number += 1
        found[f"{section}.{number}"] = line.lstrip("-| ").rstrip("| ")
    return found


@cache
def names_of_tests(path: Path) -> frozenset[str]:
    """Names of the test functions of a file that run everywhere, read without importing it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test")
        and not any(_may_skip(decorator) for decorator in node.decorator_list)
    )


def _may_skip(decorator: ast.expr) -> bool:
    return re.match(r"[\w.]*\b(skip|skipif|requires_\w+)\b", ast.unparse(decorator)) is not None
