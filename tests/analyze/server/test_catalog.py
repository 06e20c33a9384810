"""The list of the runs of a folder."""

import json
import os
import time
from socket import gethostname

import pytest

from roast_analyze.server.catalog import FolderCatalog
from roast_recorder.writer.trace_file import TraceFile


@pytest.fixture
def catalog(tmp_path):
    """A catalog of a folder that reads no facts, and is renewed by the test."""
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder, FolderCatalog(
        folder, tmp_path / "cache", lambda _run: None, None, cache=False
    )


def test_a_run_whose_recorder_was_killed(catalog, lines, task, run):
    folder, runs = catalog
    path = folder / "a.jsonl"
    machine = {"role": "scheduler", "machine": {"host": gethostname()}}
    about = {"kind": "environment", "t": 1.0, "section": "process", "name": "scheduler"}
    records = [{**about, "value": machine}, task("a-1"), task("a-2"), *run("a-1", 1.0, 6.0)]
    file = TraceFile(path)
    file.append(b"".join(lines(*records).splitlines(keepends=True)[:-1]))
    os.utime(path, (time.time() - 10,) * 2)
    runs.renew()
    [listed] = runs.changes(0)["rows"]
    assert listed["page"].startswith("live-")
    found = runs.find(listed["id"])
    state, *facts = found.progress["facts"]
    assert state[0] == "Running"
    assert "left" not in json.dumps(facts)

    file.close()
    found.live.__init__(path)  # the lock was tested just now
    runs.renew()
    runs.renew()
    assert found.live is None
    assert found.progress["facts"][0] == ("Ended", "after 5 s: stopped without a trailer")


def test_a_run_that_is_damaged_while_it_is_recorded(catalog, lines, task):
    folder, runs = catalog
    path = folder / "a.jsonl.zst"
    file = TraceFile(path)
    file.append(lines(task("a-1")))
    runs.renew()
    [listed] = runs.changes(0)["rows"]
    found = runs.find(listed["id"])
    path.write_bytes(path.read_bytes() + b"\x28\xb5\x2f\xfdnothing of the kind")
    for _ in range(6):
        runs.renew()
    found = runs.find(listed["id"])
    assert found.live is None
    assert [name for name, _ in found.progress["facts"]] == ["Damaged"]


def test_a_copy_is_a_row_that_says_so(catalog, lines, task):
    folder, runs = catalog
    whole = lines(task("a-1"), task("a-2"))
    (folder / "full.jsonl").write_bytes(whole)
    for path, when in (("full.jsonl", 3600), ("cut.jsonl", 7200)):
        (folder / "cut.jsonl").write_bytes(whole[:300])
        os.utime(folder / path, (time.time() - when,) * 2)
    runs.renew()
    cells = [row["cells"][0] for row in runs.changes(0)["rows"]]
    assert sorted((cell["text"], cell["below"]) for cell in cells) == [
        ("cut", "cut.jsonl, copy of full.jsonl"),
        ("full", "full.jsonl"),
    ]
    # A run that becomes a copy was not written just now.
    (folder / "more.jsonl").write_bytes(whole + b"\n")
    os.utime(folder / "more.jsonl", (time.time() - 3600,) * 2)
    runs.renew()
    rows = {row["cells"][0]["below"]: row for row in runs.changes(0)["rows"]}
    assert sorted(rows) == [
        "cut.jsonl, copy of more.jsonl", "full.jsonl, copy of more.jsonl", "more.jsonl",
    ]  # fmt: skip
    assert rows["cut.jsonl, copy of more.jsonl"]["page"].startswith("report-")
