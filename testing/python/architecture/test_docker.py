"""The Dockerfiles are what their generator writes, and documented."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from source_tree import ROOT


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("docker_generate", ROOT / "docker/generate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_files_match_the_table(generate):
    assert generate.differing() == []
    assert generate.main(["--check"]) == 0


def test_documented_names_exist(generate):
    releases = ("118", "120", "121", "123", "124", "125", "126", "128", "130")
    documented = [*(f"cu{release}" for release in releases), "rocm", "cpu"]
    assert [image.name for image in generate.IMAGES] == documented


def test_a_changed_and_a_stray_file_are_reported(generate, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate, "FOLDER", tmp_path)
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    (tmp_path / "Dockerfile.cpu").write_text("FROM scratch\n")
    (tmp_path / "Dockerfile.cu999").write_text("FROM scratch\n")
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err.count("does not match") == 2


def test_every_line_is_an_instruction_or_continues_one(generate):
    for image in generate.IMAGES:
        continued = False
        for line in image.render().splitlines():
            if line and not line.startswith("#") and not continued:
                assert re.match(r"(FROM|ENV|RUN|COPY|WORKDIR|CMD) \S", line), line
            continued = line.endswith("\\")
        assert not continued


def test_readme_lists_base_and_wheels_of_every_image(generate):
    readme = (ROOT / "docker/README.md").read_text()
    for image in generate.IMAGES:
        row = re.search(rf"^\| `Dockerfile\.{image.name}` \|.*$", readme, re.MULTILINE)
        assert row and f"`{image.wheels}`" in row.group(), image.name
