import shlex

import pytest
from roast_analyze.report.rerun_script import script

from roast_analyze.report import data


@pytest.fixture
def written(open_trace):
    """The script of a run with some facts, given as section, name, value."""

    def written(*facts, workers=()):
        names = ("section", "name", "value")
        records = [
            {"kind": "environment", "t": 0.0, **dict(zip(names, fact, strict=True))}
            for fact in facts
        ]
        text = script(data.gather(open_trace(*records, *workers)))
        return text.replace("\N{NO-BREAK SPACE}", " ")

    return written


def test_a_script_installs_configures_and_runs(written, worker):
    text = written(
        ("client versions", "python", "3.11.7"),
        ("client versions", "dask", "2026.8.0"),
        ("client versions", "coffea", "2026.9.0"),
        ("client machine", "platform", "Linux"),
        ("client", "program", "my analysis.py"),
        ("cluster", "type", "distributed.LocalCluster"),
        ("dask configuration", "distributed.scheduler.worker-ttl", "5 minutes"),
        workers=[worker("w1", nthreads=2), worker("w2", nthreads=2)],
    )

    assert text == (
        "# Python 3.11.7 on Linux\n"
        "# 2 workers at once with 4 threads together (distributed.LocalCluster)\n"
        "\n"
        "pip install dask==2026.8.0 coffea==2026.9.0\n"
        "\n"
        "# Dask's configuration, as the scheduler had it\n"
        "export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL='5 minutes'\n"
        "\n"
        "roast-record run -o trace.jsonl.zst -- python 'my analysis.py'\n"
    )


@pytest.mark.parametrize(
    "program",
    ["ipykernel_launcher.py", "python", "-c", "x.py; rm -rf ~", "--help.py", "a\nb.py"],
)
def test_what_is_no_script_of_the_user_is_not_run(written, program):
    text = written(("client versions", "dask", "1"), ("client", "program", program))

    assert "roast-record" not in text


HOSTILE = "1; touch pwned #`touch pwned`$(touch pwned)\ntouch pwned\u2028\u202e"


def test_a_hostile_trace_gives_no_command(written, worker):
    text = written(
        ("client versions", "python", HOSTILE),
        ("client versions", "dask", HOSTILE),
        ("client versions", HOSTILE, "1"),
        ("client versions", "numpy", "2"),
        ("client versions", "-r", "/etc/passwd"),
        ("client machine", "platform", HOSTILE),
        ("client", "program", HOSTILE),
        ("cluster", "type", HOSTILE),
        ("dask configuration", "a.b", HOSTILE),
        ("dask configuration", HOSTILE, "1"),
        ("dask configuration", "x=1;y", "1"),
        workers=[worker("w1")],
    )

    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines == ["pip install numpy==2"]
    assert "# a.b: not one short line" in text.splitlines()


def test_a_hostile_value_stays_one_word(written):
    hostile = "1; touch pwned #`touch pwned`$(touch pwned)'\""

    text = written(("dask configuration", "a.b", hostile))

    assert shlex.split(text.splitlines()[1]) == ["export", f"DASK_A__B={hostile}"]


def test_without_facts_there_is_no_script(written, worker):
    assert written(workers=[worker("w1")]) == ""


def test_a_value_that_does_not_fit_is_left_out_and_said(written):
    text = written(
        ("dask configuration", "distributed.worker.preload", "x" * 201),
        ("dask configuration", "distributed.comm.timeouts", "a\nb"),
        ("dask configuration", "distributed.scheduler.worker-ttl", "5 minutes"),
    )

    assert text.splitlines() == [
        "# Dask's configuration, as the scheduler had it",
        "export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL='5 minutes'",
        "# distributed.comm.timeouts: not one short line",
        "# distributed.worker.preload: not one short line",
    ]
