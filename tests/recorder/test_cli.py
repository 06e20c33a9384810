"""``roast-record``: what it does with good and with wrong calls."""

import subprocess
import sys

import pytest

from roast_recorder import __version__, commands


def run(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "roast_recorder", *arguments],
        capture_output=True, text=True, timeout=200, cwd=cwd,
    )  # fmt: skip


def test_version_and_help():
    assert run("--version").stdout == f"roast-trace {__version__}\n"
    assert "demo" in run("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["demo", "--chunksize", "0"], "'0' is no whole number from 1 on"),
        (["demo", "--workers", "many"], "'many' is no whole number from 1 on"),
    ],
)
def test_wrong_calls_say_what_is_wrong(arguments, message, tmp_path):
    done = run(*arguments, cwd=tmp_path)

    assert done.returncode == commands.WRONG_CALL
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_the_demo_that_is_missing(tmp_path):
    pytest.importorskip("coffea")

    done = run("demo", "--files", "missing.root", cwd=tmp_path)

    assert done.returncode == commands.WRONG_CALL
    assert "no file 'missing.root'" in done.stderr


def test_an_output_folder_that_cannot_be(tmp_path):
    pytest.importorskip("coffea")
    (tmp_path / "taken").write_text("a file")

    done = run("demo", "-o", str(tmp_path / "taken" / "below"))

    assert done.returncode == commands.WRONG_CALL
    assert "no folder can be made at" in done.stderr


@pytest.mark.cluster
def test_the_demo_on_files_of_ones_own(tmp_path):
    pytest.importorskip("coffea")
    sample = tmp_path / "ZJets"
    sample.mkdir()
    from roast_recorder.demo import files

    dataset = files.Dataset("f", files=2, events=2_000, jets=3.0, resonance_mass=91.0)
    paths = [str(path) for path in files.write_files(sample, (dataset,))]

    done = run("demo", "--files", *paths, "--chunksize", "500", "-o", str(tmp_path / "out"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "4,000 events in 8 chunks" in done.stdout
    assert "ZJets" in done.stdout
    assert f"Trace:   {tmp_path / 'out' / 'demo.jsonl.zst'}" in done.stdout
    assert f"Report:  {tmp_path / 'out' / 'demo.html'}" in done.stdout
    assert (tmp_path / "out" / "demo.jsonl.zst").stat().st_size > 1_000
    assert "<html" in (tmp_path / "out" / "demo.html").read_text()


@pytest.mark.cluster
def test_a_demo_whose_analysis_fails_still_shows_the_trace(tmp_path):
    pytest.importorskip("coffea")
    (tmp_path / "no.root").write_text("this is no ROOT file")

    done = run("demo", "--files", str(tmp_path / "no.root"), "-o", str(tmp_path / "out"))

    assert done.returncode == commands.FAILED
    assert "The analysis failed" in done.stdout
    assert "Traceback (most recent call last)" not in done.stderr
    assert (tmp_path / "out" / "demo.html").exists()
