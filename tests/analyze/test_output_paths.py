"""Output files and streams of the report; those of exports are tested with the command."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from roast_analyze import Trace
from roast_analyze.errors import NotWritable
from roast_analyze.output_paths import replacing


@pytest.mark.exhaustive
def test_a_pipe_is_written_and_not_replaced(write_trace, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Trace(write_trace()) as trace, ThreadPoolExecutor(1) as reader:
        page = reader.submit(pipe.read_text)
        trace.report(pipe)
    assert page.result().startswith("<!doctype html>")
    assert pipe.is_fifo()


@pytest.mark.exhaustive
def test_a_report_that_cannot_be_written_leaves_no_file(write_trace, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Trace(write_trace()) as trace:
        for path in folder, folder / "missing" / "page.html":
            with pytest.raises(NotWritable, match="cannot write"):
                trace.report(path)
    assert list(folder.iterdir()) == []
    assert not list(tmp_path.glob("*.part"))


def test_several_processes_can_write_the_same_file(tmp_path):
    path, link = tmp_path / "page.html", tmp_path / "link.html"
    link.symlink_to(path)
    (tmp_path / "page.html.part").write_text("a file of the user")

    with replacing(path) as one, replacing(link) as other:
        one.write_text("one")
        other.write_text("other")

    assert path.read_text() == "one"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert (names, link.is_symlink()) == (["link.html", "page.html", "page.html.part"], True)
