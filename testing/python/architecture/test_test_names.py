"""Test files have names of their own: pytest imports them by name."""

from __future__ import annotations

from collections import Counter

from source_tree import ROOT


def test_no_two_test_files_share_a_name():
    names = Counter(path.name for path in (ROOT / "testing").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
