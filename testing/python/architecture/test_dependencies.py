"""What the package declares to need, and the exact versions that are tested."""

from __future__ import annotations

import sys

import pytest
from packaging.requirements import Requirement
from source_tree import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Their private interfaces are used, so that a minor release may break us.
BOUNDED = ("apache-tvm", "apache-tvm-ffi", "apache-tvm-ffi-orcjit")


def _declared() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [Requirement(text) for text in project["dependencies"]]
    return {requirement.name: requirement for requirement in found}


def _pinned() -> dict[str, Requirement]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    texts = [line.partition("#")[0].strip() for line in lines]
    found = [Requirement(text) for text in texts if text and not text.startswith("-")]
    return {requirement.name: requirement for requirement in found}


def test_requirements_name_what_the_package_needs():
    assert set(_pinned()) == set(_declared())


@pytest.mark.parametrize("name", sorted(_pinned()))
def test_a_pinned_version_is_one_that_the_package_accepts(name):
    for specifier in _pinned()[name].specifier:
        if specifier.operator in ("==", ">="):
            assert _declared()[name].specifier.contains(specifier.version, prereleases=True)


@pytest.mark.parametrize("name", BOUNDED)
def test_the_next_minor_release_is_not_accepted_unseen(name):
    specifier = _declared()[name].specifier
    assert {s.operator for s in specifier} & {"==", "<"}
    assert not specifier.contains("99.0")


def test_the_object_loader_stays_below_its_next_series():
    specifier = _declared()["apache-tvm-ffi-orcjit"].specifier
    assert specifier.contains("0.1.3") and not specifier.contains("0.2.0")
