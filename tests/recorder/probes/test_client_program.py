"""Programs of clients: what Dask knows of a client, and what it reports."""

import os
import socket
import sys
from pathlib import Path

import pytest
from distributed import Client

import roast_recorder
from roast_recorder.client_program import dask_setup
from roast_recorder.probes.client_program import fields_of, program_facts

pytestmark = pytest.mark.cluster

#: A secret that the redactor finds in any text.
SECRET = "https://ada:pw-1234@host/x"


def test_clients_before_and_during_a_recording(cluster, client, trace, by_kind, monkeypatch):
    """A client with the preload reports; of one without, Dask knows host and versions."""
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    monkeypatch.setenv("JPY_SESSION_NAME", f"/home/{SECRET}/fit.ipynb")
    with Client(cluster) as before:
        before.sync(dask_setup, before)
        monkeypatch.delenv("JPY_SESSION_NAME")
        monkeypatch.setattr(sys, "argv", ["/opt/hist.py"])
        with roast_recorder.record(client, trace), Client(cluster, name="plain") as plain:
            plain.submit(abs, -1).result()

    records = by_kind(trace)
    added = {record["client"]: record for record in records["client_added"]}
    assert {before.id, client.id, plain.id} <= added.keys()
    for record in added.values():
        assert record["host"] == "127.0.0.1"
        assert record["versions"]["distributed"]
    reported = {record["client"]: record for record in records["client_program"]}
    assert reported.keys() == {before.id, client.id}
    for of, name in ((before.id, "fit.ipynb"), (client.id, "hist.py")):
        about = reported[of]
        assert (about["name"], about["host"], about["pid"]) == (
            name, socket.gethostname(), os.getpid(),
        )  # fmt: skip
        assert about["value"]["user_name"] == "ada"
    assert not [loss for loss in records["loss"] if "client" in loss["record_kind"]]
    assert "pw-1234" not in trace.read_text()


def test_a_report_is_redacted(client, trace, by_kind):
    with roast_recorder.record(client, trace):
        report = {"client": client.id, "name": SECRET, "user_name": SECRET}
        client.log_event("roast-client-program", report)

    text = trace.read_text()
    assert "pw-1234" not in text
    assert "<redacted:" in str(by_kind(trace)["client_program"])


def test_reports_of_others_are_bounded_and_checked():
    long = "x" * 10_000
    report = {"client": "c", "name": long, "pid": -1, "user_name": 5, "more": long}
    assert fields_of(report) == {
        "client": "c", "name": "x" * 300, "pid": None, "value": {},
    }  # fmt: skip
    for other in (None, "text", {"name": "p"}, {"client": 1, "name": "p"}):
        assert fields_of(other) == {}


def test_a_report_without_a_name_of_the_user(monkeypatch):
    def unknown() -> str:
        raise KeyError("uid")

    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    monkeypatch.setattr("getpass.getuser", unknown)
    assert program_facts()["user_name"] is None
    assert program_facts()["name"] == Path(sys.argv[0]).name
