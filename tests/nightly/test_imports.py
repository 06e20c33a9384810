"""Views of imported measurements, compared with the decoded lines."""

import shutil
import subprocess
import sys
import time

import pytest

from measured import darshan_log, yappi_files
from nightly.comparison import Answer
from nightly.recording import Recording
from nightly.test_views import SAMPLES, all_differences, differences_of
from roast_analyze import Trace
from roast_analyze.cli import main

#: Views with rows of the imported files.
VIEWS = (
    "imports", "io_jobs", "io_files", "io_segments", "yappi_functions", "yappi_calls",
    "profile_stacks",
)  # fmt: skip


@pytest.fixture(scope="module", params=["ystat", "pstat", "callgrind"])
def imported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    path = folder / "trace.jsonl.zst"
    shutil.copy(SAMPLES[0], path)
    yappi_files(folder)
    logs = [darshan_log("sample-dxt-simple.darshan"), darshan_log("ior_hdf5_example.darshan")]
    assert main(["import", "darshan", *map(str, logs), "--into", str(path)]) == 0
    stats = folder / f"work.{request.param}"
    assert main(["import", "yappi", str(stats), "--into", str(path)]) == 0
    with Trace(path) as opened:
        yield opened, Recording.read(path)


@pytest.mark.parametrize("view", VIEWS)
def test_views_have_rows(imported, view):
    opened, _ = imported

    assert opened.rows(f"SELECT count(*) > 0 FROM {view}") == [(True,)]


def test_relations(imported):
    opened, recording = imported

    assert all_differences(opened, recording) == {}


def test_loss(imported):
    opened, recording = imported

    assert differences_of("loss", Answer.of(opened.view("loss")), recording) == []


def test_a_kill_at_any_time_leaves_a_complete_trace(tmp_path):
    trace = tmp_path / "trace.jsonl.zst"
    shutil.copy(SAMPLES[0], trace)
    log = darshan_log("sample-dxt-simple.darshan")
    words = [sys.executable, "-m", "roast_analyze", "import", "darshan", log, "--into", trace]
    for wait_seconds in (0.2, 0.6, 1.0, 1.4):
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
            time.sleep(wait_seconds)
            process.kill()
        assert main(["check", str(trace)]) == 0
        with Trace(trace) as opened:
            files = opened.sql("SELECT count(*) FROM io_files").fetchall()
        assert files in ([(0,)], [(64,)])
