"""Metrics of recordings in the registry of prometheus_client."""

import os
import sys

import pytest

from roast_recorder.scheduler import health

prometheus_client = pytest.importorskip("prometheus_client")


@pytest.fixture
def registered():
    """Register the health of recordings until the end of the test."""
    recordings = []

    def register(state: str, **more: object):
        recordings.append(lambda: {"state": state, **more})
        health.register(recordings[-1])
        return recordings[-1]

    yield register
    for recording in recordings:
        health.unregister(recording)
    assert "roast_" not in scraped()


def scraped() -> str:
    return prometheus_client.generate_latest().decode()


def test_the_newest_recording_of_a_process(registered):
    first = registered("recording")
    registered("failing", records={"task": 2}, records_dropped={"event": 3}, buffer_bytes=7)

    text = scraped()
    assert text.count("# TYPE roast_recording_state gauge") == 1
    assert 'roast_recording_state{state="failing"} 1.0' in text
    assert 'roast_records_total{kind="task"} 2.0' in text
    assert 'roast_records_dropped_total{kind="event"} 3.0' in text
    assert "roast_buffer_bytes 7.0" in text
    health.unregister(first)
    assert 'state="failing"} 1.0' in scraped()


def test_an_error_leaves_the_other_metrics(registered):
    registered("recording", records=5)
    assert "python_info" in scraped()
    assert "roast_" not in scraped()


def test_a_scheduler_that_has_closed_has_no_metrics():
    def closed():
        return {}

    health.register(closed)
    assert "roast_" not in scraped()
    health.unregister(closed)


def test_without_prometheus(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    health.register(dict)
    health.unregister(dict)

    assert not caplog.messages


def test_a_registry_that_refuses(monkeypatch, caplog):
    def refuse(_):
        raise ValueError("duplicate")

    monkeypatch.setattr(prometheus_client.REGISTRY, "register", refuse)
    health.register(dict)
    assert "/metrics does not describe the recording: duplicate" in caplog.text


def test_a_note_is_written_to_no_other_file(tmp_path):
    """Other users of the folder can put a link or a FIFO there."""
    other = tmp_path / "other"
    other.write_text("mine")
    note = tmp_path / "run.not-recorded.json"
    note.symlink_to(other)
    health.write_note(str(tmp_path / "run"), "no space", "tcp://a:1")
    assert other.read_text() == "mine"
    assert not health.is_noted(str(tmp_path / "run"))

    note.unlink()
    os.mkfifo(note)
    health.write_note(str(tmp_path / "run"), "no space", "tcp://a:1")
    assert not health.is_noted(str(tmp_path / "run"))

    note.unlink()
    health.write_note(str(tmp_path / "run"), "no space", "tcp://a:1")
    assert health.is_noted(str(tmp_path / "run"))
    health.write_note(str(tmp_path / "run"), "", "tcp://a:1")
    assert list(tmp_path.iterdir()) == [other]
