"""The environment, and the script that runs a program again."""

import shlex

import pytest

from roast_analyze.report.run import Run
from roast_analyze.report.topics import environment
from roast_analyze.report.topics.environment.rerun_script import script


@pytest.fixture
def facts():
    """Records of facts, given as section, name, value."""

    def facts(*rows):
        names = ("section", "name", "value")
        return [
            {"kind": "environment", "t": 0.0, **dict(zip(names, row, strict=True))}
            for row in rows
        ]

    return facts


@pytest.fixture
def written(opened, facts):
    """The script of a run with some facts."""

    def written(*rows, workers=()):
        trace, about = opened(*facts(*rows), *workers)
        text = script(environment.query(trace).rerun, about.run)
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
        "# 2 workers, 4 threads in total (distributed.LocalCluster)\n"
        "\n"
        "pip install dask==2026.8.0 coffea==2026.9.0\n"
        "\n"
        "# Dask's configuration of the scheduler\n"
        "export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL='5 minutes'\n"
        "\n"
        "roast-record run -o trace.jsonl.zst -- python 'my analysis.py'\n"
    )


def test_other_programs_are_not_run():
    for program in (
        "ipykernel_launcher.py", "python", "-c", "x.py; rm -rf ~", "--help.py", "a\nb.py",
    ):  # fmt: skip
        rerun = environment.data.Rerun(None, None, program, None, {"dask": "1"}, {})
        assert script(rerun, Run()) == "pip install dask==1\n", program


HOSTILE = "1; touch pwned #`touch pwned`$(touch pwned)\ntouch pwned\u2028\u202e"


def test_a_hostile_trace_adds_no_command(written, worker):
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
    assert "# a.b: omitted, longer than a line" in text.splitlines()


def test_a_hostile_value_stays_one_word(written):
    hostile = "1; touch pwned #`touch pwned`$(touch pwned)'\""

    text = written(("dask configuration", "a.b", hostile))

    assert shlex.split(text.splitlines()[1]) == ["export", f"DASK_A__B={hostile}"]


def test_without_facts_there_is_no_script(written, worker):
    assert written(workers=[worker("w1")]) == ""


def test_long_values_are_omitted(written):
    text = written(
        ("dask configuration", "distributed.worker.preload", "x" * 201),
        ("dask configuration", "distributed.comm.timeouts", "a\nb"),
        ("dask configuration", "distributed.scheduler.worker-ttl", "5 minutes"),
    )

    assert text.splitlines() == [
        "# Dask's configuration of the scheduler",
        "export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL='5 minutes'",
        "# distributed.comm.timeouts: omitted, longer than a line",
        "# distributed.worker.preload: omitted, longer than a line",
    ]


def test_what_a_rerun_needs(open_trace, facts):
    found = environment.query(
        open_trace(
            *facts(
                ("client versions", "python", "3.11.7"),
                ("client versions", "numpy", "2.4.6"),
                ("client versions", "dask", "1"),
                ("scheduler versions", "numpy", "2.4.5"),
                ("scheduler versions", "dask", "1"),
                ("client machine", "platform", "Linux"),
                ("client", "program", "analysis.py"),
                ("client", "arguments", '["-n", "5"]'),
                ("client", "git commit", "abc"),
                ("client", "git branch", "main"),
                ("client", "git dirty", "true"),
                ("cluster", "type", "LocalCluster"),
                ("dask configuration", "distributed.scheduler.work-stealing", True),
                ("dask configuration", "optimization.fuse.active", None),
            )
        )
    )

    assert found.differing == {"numpy": {"client": "2.4.6", "scheduler": "2.4.5"}}
    assert found.rerun == environment.data.Rerun(
        python="3.11.7",
        platform="Linux",
        program="analysis.py",
        cluster="LocalCluster",
        packages={"numpy": "2.4.6", "dask": "1"},
        configuration={"distributed.scheduler.work-stealing": "true"},
        arguments=("-n", "5"),
        commit="commit abc of main, with uncommitted changes",
    )


def test_versions_of_the_scheduler_replace_unknown_ones_of_the_client(open_trace, facts):
    rows = ("scheduler versions", "python", "3.12"), ("scheduler versions", "dask", "1")

    rerun = environment.query(open_trace(*facts(*rows))).rerun

    assert (rerun.python, rerun.packages) == ("3.12", {"dask": "1"})


def test_sentences(sentences, facts):
    assert sentences(
        "environment",
        *facts(("client versions", "numpy", "2"), ("scheduler versions", "numpy", "1")),
    ) == (
        "Recorded with dask 2026.8.0, Python 3.11.7. Versions differ between processes: numpy "
        "(client 2, scheduler 1)."
    )
