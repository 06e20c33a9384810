"""Folders of spilled data."""

import os
import tempfile
import time

import pytest

from roast_analyze.open.spill import new_spill_folder, remove_abandoned_spills


@pytest.mark.parametrize(
    ("age_seconds", "is_running", "is_kept"),
    [(100_000, False, False), (100_000, True, True), (60, False, True)],
)
def test_folders_of_killed_processes_are_removed_after_a_day(
    tmp_path, monkeypatch, age_seconds, is_running, is_kept
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = new_spill_folder()
    folder.mkdir()
    # No process has an id this large.
    owner = os.getpid() if is_running else 2**31 - 1
    files = folder / f"duckdb_temp_{owner}_0_owner", folder / "storage.tmp"
    used_t = time.time() - age_seconds
    for file in files:
        file.touch()
    for path in (*files, folder):
        os.utime(path, (used_t, used_t))

    remove_abandoned_spills()

    assert folder.exists() == is_kept
