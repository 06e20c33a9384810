"""The command ``roast-record demo``."""

import subprocess
import sys

import pytest

pytest.importorskip("coffea")

from roast_recorder.demo import files

pytestmark = pytest.mark.cluster


def demo(*arguments):
    command = [sys.executable, "-m", "roast_recorder", "demo", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout, done.stderr


def test_the_demo_on_the_users_files(tmp_path):
    sample = tmp_path / "ZJets"
    sample.mkdir()
    dataset = files.Dataset("f", files=2, events=2_000, jets=3.0, resonance_mass=91.0)
    paths = [str(path) for path in files.write_files(sample, (dataset,))]

    code, out, err = demo("--files", *paths, "--chunksize", "500", "-o", str(tmp_path / "out"))

    assert code == 0, out + err
    assert "4,000 events in 8 chunks" in out
    assert "ZJets" in out
    assert f"Trace:   {tmp_path / 'out' / 'demo.jsonl.zst'}" in out
    assert f"Report:  {tmp_path / 'out' / 'demo.html'}" in out
    assert (tmp_path / "out" / "demo.jsonl.zst").stat().st_size > 1_000
    assert "<html" in (tmp_path / "out" / "demo.html").read_text()


def test_a_demo_whose_analysis_fails_still_reports_its_trace(tmp_path):
    (tmp_path / "no.root").write_text("this is no ROOT file")

    code, out, err = demo("--files", str(tmp_path / "no.root"), "-o", str(tmp_path / "out"))

    assert code == 1
    assert "The analysis failed" in out
    assert "Traceback (most recent call last)" not in err
    assert (tmp_path / "out" / "demo.html").exists()
