"""The examples of the documentation run, and its links lead somewhere."""

from __future__ import annotations

import re

import pytest
from source_tree import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docker/*.md")])


def _name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """All blocks of a page run in order, in one namespace, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace = {"__name__": page.stem}
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start()) + 1
        # Traced functions read their source, so the block must be a file.
        block = tmp_path / f"{page.stem}_{line}.py"
        block.write_text("\n" * line + match.group(1), encoding="utf-8")
        source = block.read_text(encoding="utf-8")
        exec(compile(source, str(block), "exec", dont_inherit=True), namespace)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\[[^\]]+\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_named_files_exist(page):
    """Paths in code spans that name files of this repository."""
    text = page.read_text(encoding="utf-8")
    roots = r"(?:tilelang|testing|src|docs|docker|examples|benchmark)"
    paths = re.findall(rf"`({roots}/[\w./-]+\.(?:py|md|toml|cc|h))`", text)
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing
