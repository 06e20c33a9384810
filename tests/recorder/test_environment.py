"""The environment is recorded by an allow-list: what is not on it stays out."""

import dask
import pytest

import roast_recorder
from roast_recorder import environment

pytestmark = pytest.mark.cluster


def test_versions_machine_and_configuration_are_recorded(client, tmp_path, read_lines):
    with roast_recorder.record(client, tmp_path / "trace.jsonl"):
        pass

    facts = {
        (line["section"], line["name"]): line.get("value")
        for line in read_lines(tmp_path / "trace.jsonl")
        if line["kind"] == "environment"
    }
    assert facts["scheduler versions", "dask"] == dask.__version__
    assert facts["client versions", "distributed"] == facts["scheduler versions", "distributed"]
    assert facts["scheduler", "workers when recording began"] == 2
    assert facts["cluster", "type"] == "distributed.deploy.local.LocalCluster"
    assert {name for section, name in facts if section == "dask configuration"} == set(
        environment.CONFIGURATION
    )


def test_what_is_not_on_the_list_never_gets_in(client, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-of-the-environment")

    with (
        dask.config.set({"jobqueue.password": "canary-of-the-configuration"}),
        roast_recorder.record(client, tmp_path / "trace.jsonl"),
    ):
        pass

    assert "canary" not in (tmp_path / "trace.jsonl").read_text()
