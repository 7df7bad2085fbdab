"""``testing/behaviours.toml`` is complete and true: every statement, every test, every anchor."""

import hashlib
import importlib.util
import re
from collections import Counter

import pytest
from behaviour_map import REFERENCE, ROOT, names_of_tests, read_map, statements

from tilelang.language.not_yet import NOT_YET

DATA = read_map()
BEHAVIOURS = DATA["behaviour"]
KINDS = ("tests", "later", "deviation")


# What a `later` waits for must be missing, or the statement can be shown today.
MISSING = {
    "autotuner": lambda: importlib.util.find_spec("tilelang.autotuner") is None,
    "tma": lambda: "tma_copy" in NOT_YET["cuda"],
}


def reference_statements():
    if not REFERENCE.exists():
        pytest.skip(f"the reference is not at {REFERENCE.name} beside the repository")
    text = REFERENCE.read_text(encoding="utf-8")
    assert hashlib.sha256(text.encode()).hexdigest() == DATA["reference"]["sha256"], (
        "the reference changed: go through the map again, then update its sha256"
    )
    return statements(text)


def test_the_number_of_statements_is_that_of_the_reference():
    assert len(BEHAVIOURS) == DATA["reference"]["statements"]
    assert re.fullmatch(r"[0-9a-f]{64}", DATA["reference"]["sha256"])


def test_every_statement_of_the_reference_is_mapped():
    assert [entry["at"] for entry in BEHAVIOURS] == list(reference_statements())


def test_texts_begin_their_statement_and_no_other():
    found = reference_statements()
    for entry in BEHAVIOURS:
        matching = [at for at, text in found.items() if text.startswith(entry["text"])]
        assert matching == [entry["at"]], entry


def test_entries_say_one_thing_each():
    places = Counter(entry["at"] for entry in BEHAVIOURS)
    assert not [at for at, count in places.items() if count > 1]
    for entry in BEHAVIOURS:
        assert sum(kind in entry for kind in KINDS) == 1, entry
        assert set(entry) <= {"at", "text", "remains", "differs", *KINDS}, entry
        assert "tests" in entry or not {"remains", "differs"} & set(entry), entry


def test_every_test_exists():
    for entry in BEHAVIOURS:
        tests = entry.get("tests", ["none"])
        assert tests and len(tests) == len(set(tests)), entry
        for test in tests if "tests" in entry else []:
            path, _, name = test.partition("::")
            assert path.startswith("testing/python/"), test
            assert name in names_of_tests(ROOT / path), f"{entry['at']}: no test {test}"


def test_every_deviation_is_documented():
    text = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
    anchors = re.findall(r'<a id="([^"]+)"></a>', text)
    assert len(anchors) == len(set(anchors))
    named = {
        entry[kind] for entry in BEHAVIOURS for kind in ("deviation", "differs") if kind in entry
    }
    assert named <= set(anchors), named - set(anchors)


def test_what_waits_for_something_waits_for_something_missing():
    named = {entry["later"] for entry in BEHAVIOURS if "later" in entry}
    assert named <= set(DATA["later"]) == set(MISSING)
    there = [what for what in sorted(named) if not MISSING[what]()]
    assert not there, f"is there now; map the statements that wait for it to tests: {there}"


def test_every_file_of_this_folder_shows_a_statement():
    mapped = {test for entry in BEHAVIOURS for test in entry.get("tests", [])}
    for path in sorted((ROOT / "testing/python/behaviours").glob("test_behaviour_*.py")):
        name = f"{path.relative_to(ROOT)}::"
        assert path.stem == "test_behaviour_map" or any(t.startswith(name) for t in mapped), name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("### 3. a.py\n- one\n- two\n", {"3.1": "one", "3.2": "two"}),
        (
            "### tilelang.testing\n| name | signature |\n|---|---|\n| main | () |\n\nA sentence.\n",
            {"testing.1": "main | ()", "testing.2": "A sentence."},
        ),
        ("# Title\n\nNot a statement.\n", {}),
    ],
)
def test_reading_a_reference(text, expected):
    assert statements(text) == expected
