"""The environment, and the script that reruns a program."""

import json
import shlex

import dask
import pytest

from analyze.report.reading import plain
from roast_analyze.report.run import Run, query_run
from roast_analyze.report.topics import environment
from roast_analyze.report.topics.environment.rerun_script import Rerun, script

HOSTILE = "1; touch pwned #`touch pwned`$(touch pwned)\ntouch pwned\u2028\u202e"


@pytest.fixture
def facts():
    """Return records of facts, given as section, name, value."""

    def facts(*rows):
        names = ("section", "name", "value")
        return [
            {"kind": "environment", "t": 0.0, **dict(zip(names, row, strict=True))}
            for row in rows
        ]

    return facts


@pytest.fixture
def written(open_trace, facts):
    """Return the lines of the script of a run with some facts."""

    def written(*rows, workers=()):
        trace = open_trace(*facts(*rows), *workers)
        text = script(environment.query(trace).rerun, query_run(trace))
        return plain(text).splitlines()

    return written


def test_a_script_installs_configures_and_runs(written, worker):
    assert written(
        ("client versions", "python", "3.11.7"),
        ("client versions", "dask", "2026.8.0"),
        ("client versions", "coffea", "2026.9.0"),
        ("client versions", "roast-trace", "0.7.0"),
        ("scheduler versions", "dask", "1"),
        ("client machine", "platform", "Linux"),
        ("client", "program", "my analysis.py"),
        ("client", "arguments", '["-n", "5"]'),
        ("client", "git commit", "abc"),
        ("client", "git branch", "main"),
        ("client", "git remote", "git@x"),
        ("client", "git dirty", "true"),
        ("cluster", "type", "distributed.LocalCluster"),
        ("dask configuration", "distributed.scheduler.work-stealing", True),
        ("dask configuration", "distributed.scheduler.worker-ttl", "5 minutes"),
        ("dask configuration", "optimization.fuse.active", None),
        workers=[worker("w1", nthreads=2), worker("w2", nthreads=2)],
    ) == [
        "# Python 3.11.7 on Linux",
        "# 2 workers, 4 threads in total (distributed.LocalCluster)",
        "# Recorded by roast-trace 0.7.0, which is installed from a clone",
        "# commit abc of main of git@x, with uncommitted changes",
        "",
        "python3 -m pip install dask==2026.8.0 coffea==2026.9.0",
        "",
        "# Dask's configuration of the scheduler",
        "export DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING=true",
        "export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL='5 minutes'",
        "",
        "roast-record run -o rerun.jsonl.zst -- python3 'my analysis.py' -n 5",
    ]


@pytest.mark.exhaustive
def test_a_script_of_few_facts(written, worker):
    """The versions are those of the scheduler; cut arguments are omitted."""
    assert written(workers=[worker("w1")]) == []
    assert written(
        ("scheduler versions", "python", "3.12"),
        ("scheduler versions", "dask", "1"),
        ("client", "program", "a.py"),
        ("client", "arguments", '["-n", "5'),
    ) == [
        "# Python 3.12", "", "python3 -m pip install dask==1", "",
        "# arguments: omitted, too long",
        "roast-record run -o rerun.jsonl.zst -- python3 a.py",
    ]  # fmt: skip


def test_arguments_are_exact_or_a_comment_names_them(written):
    exact = ["it's  one", "-f", *(f"root://site//store/file-{n}.root" for n in range(95))]
    changed = ["--key=<redacted:3f9a2c71d0>", "x" * 300, "a\nb\u202e"]

    *comments, command = written(
        ("client", "program", "a.py"), ("client", "arguments", json.dumps([*exact, *changed]))
    )

    assert comments == [
        "# argument 98 was withheld: insert it",
        "# argument 99 can have been cut: complete it",
        "# argument 100 contains control characters: correct it",
        "# arguments after number 100 can be missing: add them",
    ]
    words = shlex.split(command)[6:]
    assert words == ["a.py", *exact, "--key=<redacted:3f9a2c71d0>", "x" * 300, "a b⟨U+202E⟩"]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ({"program": "run.py", "path": "fits/my run.py"}, ["fits/my run.py"]),
        (
            {"program": "run.py", "path": "a/../../run.py", "module": "fits.run"},
            ["-m", "fits.run"],
        ),
    ],
    ids=["path", "module"],
)
def test_a_program_in_a_folder_is_run_as_it_was(start, words):
    text = script(Rerun({"client": start}, {}), Run())

    assert shlex.split(text) == [
        "roast-record",
        "run",
        "-o",
        "rerun.jsonl.zst",
        "--",
        "python3",
        *words,
    ]


def test_values_that_were_not_recorded_are_named_and_not_set():
    configuration = {
        "distributed.client.preload": '["<withheld>"]',
        "jobqueue.slurm.account": "<redacted-1f>",
        "a.password": "<redacted>",
        "a.class": '["<package.Class>"]',
        "a.list": '[null, true, "x", {"y": 1.5}]',
        "a.text": "1 < 2 > 0",
    }

    lines = script(Rerun({}, configuration), Run()).splitlines()

    assert lines == [
        "# Dask's configuration of the scheduler",
        "export DASK_A__LIST='[None, True, '\"'\"'x'\"'\"', {'\"'\"'y'\"'\"': 1.5}]'",
        "export DASK_A__TEXT='1 < 2 > 0'",
        *(
            f"# {name}: not recorded; set it if the program needs it"
            for name in list(configuration)[:4]
        ),
    ]
    [_, value] = shlex.split(lines[1])[1].split("=", 1)
    assert dask.config.interpret_value(value) == [None, True, "x", {"y": 1.5}]


def test_other_programs_are_not_run():
    for program in (
        "ipykernel_launcher.py", "python", "-c", "x.py; rm -rf ~", "--help.py", "a\nb.py",
        "../x.py", "/x.py", "a/-x.py",
    ):  # fmt: skip
        facts = {"client": {"program": program}, "client versions": {"dask": "1"}}
        assert script(Rerun(facts, {}), Run()) == "python3 -m pip install dask==1\n", program


def test_a_hostile_trace_adds_no_command(written, worker):
    hostile_word = HOSTILE.partition("\n")[0] + "'\""

    lines = written(
        ("client versions", "python", HOSTILE),
        ("client versions", "dask", HOSTILE),
        ("client versions", HOSTILE, "1"),
        ("client versions", "numpy", "2"),
        ("client versions", "-r", "/etc/passwd"),
        ("client machine", "platform", HOSTILE),
        ("client", "program", HOSTILE),
        ("cluster", "type", HOSTILE),
        ("dask configuration", "a.b", HOSTILE),
        ("dask configuration", "a.long", "x" * 201),
        ("dask configuration", "a.word", hostile_word),
        ("dask configuration", HOSTILE, "1"),
        ("dask configuration", "x=1;y", "1"),
        workers=[worker("w1")],
    )

    install, export = (line for line in lines if line and not line.startswith("#"))
    assert install == "python3 -m pip install numpy==2"
    assert shlex.split(export) == ["export", f"DASK_A__WORD={hostile_word}"]
    assert lines[-2:] == [
        "# a.b: omitted, longer than a line", "# a.long: omitted, longer than a line",
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_sentences(sentences, facts, process_facts):
    def recorded_by_worker(n):
        job = {"system": "SLURM", "job_id": n, "queue": "cms", "cores": 8}
        return process_facts("worker", {"b": n}, {"b": 0}, worker=f"w{n}", jobs=[job])

    versions = [
        (f"{process} versions", f"p{n}", version)
        for process, version in (("client", "2"), ("scheduler", "1"))
        for n in range(6)
    ]

    assert sentences(
        "environment",
        *facts(*versions),
        *process_facts("scheduler", {"a": 1}, {"a": 2}),
        *recorded_by_worker(1),
        *recorded_by_worker(2),
    ) == (
        "Recorded with dask 2026.8.0, Python 3.11.7. Versions differ between processes: "
        "p0 (client 2, scheduler 1), p1 (client 2, scheduler 1), p2 (client 2, scheduler 1), "
        "p3 (client 2, scheduler 1) and p4 (client 2, scheduler 1), and 1 more. "
        "2 options of Dask's configuration differ from the default; 1 of them varies between "
        "processes. 2 workers in 2 batch jobs of SLURM, queue cms, 8 cores."
    )
    assert sentences("environment", *process_facts("scheduler", {}, {"a": 2})).endswith(
        "Dask's configuration is the default."
    )
