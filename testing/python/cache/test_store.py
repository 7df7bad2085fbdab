"""The entry store: atomic, verified, bounded."""

import json
import os
import threading
import time

import pytest

from tilelang.cache.store import DirectoryStore

FILES = {"plan.json": b"{}", "kernel.o": bytes(range(256)) * 4}


def key_of(number: int) -> str:
    return f"{number:064x}"


@pytest.fixture
def store(tmp_path):
    return DirectoryStore(tmp_path / "cache", "1.0/linux")


def test_an_entry_comes_back_as_it_was_written(store):
    assert store.put(key_of(1), FILES, {"name": "k"})
    entry = store.get(key_of(1))
    assert dict(entry.files) == FILES
    assert entry.info == {"name": "k"}
    assert (entry.directory / "kernel.o").read_bytes() == FILES["kernel.o"]


def test_an_absent_entry_creates_nothing(store):
    assert store.get(key_of(1)) is None
    assert not store.root.exists()


def test_the_first_writer_wins(store):
    assert store.put(key_of(1), FILES)
    assert not store.put(key_of(1), {"plan.json": b"other"})
    assert dict(store.get(key_of(1)).files) == FILES
    assert not any((store.root / "1.0/linux/.staging").iterdir())


def damage_truncate(folder):
    (folder / "kernel.o").write_bytes(FILES["kernel.o"][:100])


def damage_flip(folder):
    data = bytearray(FILES["kernel.o"])
    data[7] ^= 1
    (folder / "kernel.o").write_bytes(data)


def damage_no_manifest(folder):
    (folder / "manifest.json").unlink()


def damage_torn_manifest(folder):
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text[: len(text) // 2])


def damage_manifest_type(folder):
    (folder / "manifest.json").write_text("[1]")


def damage_foreign_manifest(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "key": key_of(9)}))


def damage_missing_file(folder):
    (folder / "plan.json").unlink()


@pytest.mark.parametrize(
    "damage",
    [
        damage_truncate,
        damage_flip,
        damage_no_manifest,
        damage_torn_manifest,
        damage_manifest_type,
        damage_foreign_manifest,
        damage_missing_file,
    ],
)
def test_a_damaged_entry_is_removed_and_can_be_written_again(store, damage):
    store.put(key_of(1), FILES)
    damage(store.path(key_of(1)))
    assert store.get(key_of(1)) is None
    assert not store.path(key_of(1)).exists()
    assert store.put(key_of(1), FILES)
    assert dict(store.get(key_of(1)).files) == FILES


def test_least_recently_used_entries_are_evicted(tmp_path):
    store = DirectoryStore(tmp_path, "1.0/linux", max_bytes=10_000)
    for number in range(4):
        store.put(key_of(number), {"kernel.o": bytes(2000)})
        old = time.time() - 100 + number
        os.utime(store.path(key_of(number)) / "manifest.json", (old, old))
        os.utime(store.path(key_of(number)) / "kernel.o", (old, old))
    assert store.get(key_of(0)) is not None  # now the most recently used of the four
    store.put(key_of(4), {"kernel.o": bytes(3000)})
    kept = {number for number in range(5) if store.path(key_of(number)).exists()}
    assert 4 in kept and 0 in kept and 1 not in kept
    assert store.info().size_bytes <= 10_000


def test_the_bound_covers_entries_of_other_versions(tmp_path):
    old = DirectoryStore(tmp_path, "0.9/linux")
    old.put(key_of(1), {"kernel.o": bytes(9000)})
    past = time.time() - 1000
    for file in old.path(key_of(1)).iterdir():
        os.utime(file, (past, past))
    new = DirectoryStore(tmp_path, "1.0/linux", max_bytes=10_000)
    new.put(key_of(2), {"kernel.o": bytes(5000)})
    assert old.get(key_of(1)) is None and new.get(key_of(2)) is not None


def test_an_entry_above_the_bound_is_not_stored(tmp_path):
    store = DirectoryStore(tmp_path, "1.0/linux", max_bytes=1000)
    assert not store.put(key_of(1), {"kernel.o": bytes(2000)})
    assert store.info().entries == 0


def test_stale_staging_is_removed_and_fresh_staging_kept(store):
    staging = store.root / "1.0/linux/.staging"
    for name, age in (("stale", 7200), ("fresh", 10)):
        (staging / name).mkdir(parents=True)
        (staging / name / "half.o").write_bytes(b"x")
        then = time.time() - age
        os.utime(staging / name, (then, then))
    store.put(key_of(1), FILES)
    assert [folder.name for folder in staging.iterdir()] == ["fresh"]


def test_clear_removes_entries_and_nothing_of_the_user(store):
    store.put(key_of(1), FILES)
    (store.root / "mine").mkdir()
    (store.root / "notes.txt").write_text("keep")
    before = store.clear()
    assert before.entries == 1
    assert sorted(path.name for path in store.root.iterdir()) == ["mine", "notes.txt"]


def test_a_read_only_folder_serves_hits_and_ignores_writes(store, monkeypatch, caplog):
    """By refusing every change of the file system, as chmod would not stop a test run as root."""
    store.put(key_of(1), FILES)

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    for name in ("utime", "rename", "mkdir"):
        monkeypatch.setattr(os, name, refuse)
    assert dict(store.get(key_of(1)).files) == FILES
    assert not store.put(key_of(2), FILES)
    assert not store.put(key_of(3), FILES)
    assert caplog.text.count("not cached") == 1


def test_a_damaged_entry_of_a_read_only_folder_is_not_served(store, monkeypatch):
    store.put(key_of(1), FILES)
    damage_truncate(store.path(key_of(1)))

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "rename", refuse)
    assert store.get(key_of(1)) is None and store.get(key_of(1)) is None


def test_a_root_that_is_a_file_is_survived(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    store = DirectoryStore(tmp_path / "file", "1.0/linux")
    assert store.get(key_of(1)) is None
    assert not store.put(key_of(1), FILES)
    assert "not cached" in caplog.text


def test_a_full_disk_is_survived_and_leaves_nothing(store, monkeypatch, caplog):
    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    assert not store.put(key_of(1), FILES)
    assert "No space left" in caplog.text
    assert not any((store.root / "1.0/linux/.staging").iterdir())
    assert not store.path(key_of(1)).exists()


def test_ctrl_c_while_writing_leaves_nothing(store, monkeypatch):
    def interrupted(self, data):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.put(key_of(1), FILES)
    assert not any((store.root / "1.0/linux/.staging").iterdir())


def test_a_file_name_cannot_leave_the_entry(store):
    with pytest.raises(ValueError, match="plain file name"):
        store.put(key_of(1), {"../escape": b""})


def test_readers_never_see_half_an_entry(store):
    stop = threading.Event()
    seen = []

    def read():
        while not stop.is_set():
            entry = store.get(key_of(1))
            if entry is not None:
                seen.append(dict(entry.files) == FILES)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(50):
        store.put(key_of(1), FILES)
        store.remove(key_of(1))
    deadline = time.monotonic() + 30
    while not seen and time.monotonic() < deadline:  # the reader may have had no turn yet
        store.put(key_of(1), FILES)
        time.sleep(0.001)
    stop.set()
    reader.join()
    assert seen and all(seen)
