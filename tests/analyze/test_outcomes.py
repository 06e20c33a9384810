"""Outcomes of attempts, states of tasks and statuses of workers have a place everywhere."""

import re
from pathlib import Path
from typing import get_args

import pytest
from distributed.core import Status
from distributed.scheduler import TaskStateState

import roast_analyze
from roast_analyze.algorithms.attempt_intervals import USES
from roast_analyze.algorithms.outcomes import COMPUTING, OUTCOMES, SKIPPED
from roast_analyze.report.core_time_uses import USES as SHOWN_USES
from roast_analyze.report.run import query_run
from roast_analyze.report.topics.timeline import lanes

SOURCES = Path(roast_analyze.__file__).parent
#: Files that name several outcomes, and which ones: a new outcome has to be placed in each.
PLACES = {
    "algorithms/outcomes.py": {*OUTCOMES, SKIPPED},
    "algorithms/run_plan.py": {"memory", "erred", "retried", "rescheduled"},
    "algorithms/progress.py": {"memory", "erred"},  # states of tasks
    "algorithms/waits.py": {"memory", "lost", "cancelled", "unfinished"},
    "algorithms/critical_path.py": {"memory", "erred", "retried", "rescheduled", "lost"},
    "imports/dump_state.py": {"memory", "erred"},  # states of tasks
    "run_amounts.py": {"memory", SKIPPED},
    "report/topics/chunks/__init__.py": {"memory", "lost"},
    "report/topics/timeline/lanes.py": {"memory", "retried", "lost"},  # and columns
    "report/columns.py": {"erred", "lost", "retried", "cancelled", "unfinished"},  # headings
    "report/run.py": {*OUTCOMES},  # fields of view run
    "report/topics/tasks/__init__.py": {*OUTCOMES} - {"rescheduled"},  # columns of prefixes
    "report/topics/verdict.py": {*OUTCOMES},  # counts of view run
    "computed/waits.py": {"memory", "unfinished"},
    "commands/summary_tables.py": {"erred", "retried", "lost", SKIPPED},  # columns
    "sql/tasks/_attempt_use.sql": {*OUTCOMES, SKIPPED},
    "sql/tasks/_cancelled_prefixes.sql": {"memory", "erred"},  # and states of tasks
    "sql/tasks/_has_raised.sql": {"erred", "retried"},
    "sql/tasks/_is_failed.sql": {"erred", "retried", "lost", SKIPPED},
    "sql/tasks/_is_released.sql": {"rescheduled", "cancelled"},
    "sql/tasks/_task_runs.sql": {*OUTCOMES},
    "sql/tasks/failures.sql": {"erred", "retried", "lost", SKIPPED},
    "sql/tasks/unattempted.sql": {"memory", "erred", "cancelled"},  # states of tasks
    "sql/tasks/wanted_keys.sql": {"memory", "erred"},  # states of tasks
    "sql/tasks/prefixes.sql": {*OUTCOMES},
    "sql/tasks/task_groups.sql": {*OUTCOMES},
    "sql/trace/_run.sql": {*OUTCOMES, SKIPPED},
    "sql/coffea/_chunks.sql": {"memory", "erred", "retried", SKIPPED},
    "sql/coffea/_file_attempts.sql": {"erred", SKIPPED},
    "sql/rules/skipped-files.sql": {"memory", SKIPPED},
    "sql/rules/killed-workers.sql": {"memory", "erred"},
    "sql/rules/retries.sql": {"memory", "erred", "retried", SKIPPED},
    "sql/rules/unfinished-tasks.sql": {"memory", "unfinished"},
    "sql/workers/_fatal_chunks.sql": {"erred", "lost"},
    "sql/workers/_silences.sql": {"memory", "lost", "unfinished"},
}  # fmt: skip
#: Literals: in SQL '…', in Python "…" or a word of a list of columns.
LITERAL = r"""(?<![\w.])['"]({0})['"]"""


@pytest.fixture(scope="module")
def each_outcome(worker, task, run):
    """Return records with one attempt of each outcome, which computes for a second."""
    ends = {"memory", "erred", "retried"}
    records = [worker("w1")]
    for number, outcome in enumerate(OUTCOMES):
        start, key = 10.0 * number, f"t-{outcome}"
        phases = {"phases": [("compute", start, start + 1)]} if outcome in ends else {}
        stop = None if outcome == "unfinished" else start + 1
        records += [task(key, t=start), *run(key, start, stop, outcome=outcome, **phases)]
    return records


def test_each_outcome_is_counted_and_used(ask, each_outcome):
    query = ask(*each_outcome, stop_t=61.0)
    assert query("SELECT outcome FROM task_runs ORDER BY processing_t") == [
        (outcome,) for outcome in OUTCOMES
    ]
    counts = " + ".join(OUTCOMES)
    for view in ("run", "prefixes", "task_groups"):
        assert query(f"SELECT {counts}, task_runs FROM {view}") == [(7, 7)], view
    uses = dict(
        query("SELECT use, sum(seconds) FROM core_time WHERE category = 'busy' GROUP BY 1")
    )
    expected = [meaning.use for meaning in OUTCOMES.values()]
    assert uses == {use: float(expected.count(use)) for use in expected}
    for name in ("has_raised", "is_failed", "is_released"):
        of_sql = query(f"SELECT outcome FROM task_runs WHERE _{name}(outcome)")
        field = "is_failure" if name == "is_failed" else name
        assert {outcome for (outcome,) in of_sql} == {
            outcome for outcome, meaning in OUTCOMES.items() if getattr(meaning, field)
        }


def test_each_outcome_is_shown(open_trace, each_outcome, analyze, write_trace):
    run = query_run(open_trace(*each_outcome, stop_t=61.0))
    assert sum(getattr(run, outcome) for outcome in OUTCOMES) == run.task_runs == len(OUTCOMES)
    code, out, _ = analyze(write_trace(*each_outcome, stop_t=61.0))
    assert code == 0
    assert all(f"1 {outcome}" in " ".join(out.split()) for outcome in OUTCOMES)
    script = (SOURCES / "report/assets/timeline/describe.js").read_text()
    described = re.search(r"const OUTCOMES = \{(.+?)\}", script, re.DOTALL)
    assert set(re.findall(r"(\w+):", described[1])) | {"memory"} == set(lanes.NUMBERED_OUTCOMES)


def test_each_use_has_a_category_words_and_a_color():
    sql = (SOURCES / "sql/workers/core_time.sql").read_text()
    busy = re.search(r"use IN \(([^)]+)\) THEN 'busy'", sql)
    assert set(re.findall("'(.+?)'", busy[1])) == {*COMPUTING, "deserialize", "disk"}
    assert set(USES) <= set(SHOWN_USES)


def test_a_new_outcome_has_to_be_placed():
    """Files that distinguish outcomes name those of ``PLACES``, and no other file does."""
    literal = re.compile(LITERAL.format("|".join([*OUTCOMES, SKIPPED])))
    found = {}
    for path in [*SOURCES.rglob("*.sql"), *SOURCES.rglob("*.py")]:
        named = set(literal.findall(path.read_text(encoding="utf-8")))
        if len(named) > 1:
            found[path.relative_to(SOURCES).as_posix()] = named
    named_in_words = {"report/columns.py", "report/run.py", "report/topics/tasks/__init__.py",
                      "report/topics/verdict.py"}  # fmt: skip
    assert found.keys() - PLACES.keys() == set()
    assert {
        place: outcomes for place, outcomes in PLACES.items() if place not in named_in_words
    } == {place: found.get(place) for place in PLACES if place not in named_in_words}
    for place in named_in_words:
        words = set(re.findall(r"\w+", (SOURCES / place).read_text(encoding="utf-8")))
        assert PLACES[place] <= words, place


#: How Dask can end the attempts of a task that is not done, by the start of the stimulus.
STIMULI = {
    "reschedule": "rescheduled",
    "client-releases-keys": "cancelled",
    "cancel-key": "cancelled",
    "remove-client": "cancelled",
    "client-restart": "lost",
    "client-restart-workers": "lost",
    "handle-worker-cleanup": "lost",
    "retire-workers": "lost",
    "worker-closing": "lost",
    "worker-close-gracefully": "lost",
    "worker-send-comm-fail": "lost",
    "send-all-comm-fail": "lost",
    "check-worker-ttl": "lost",
    "cancelled-by-worker-close": "lost",
}


def test_every_way_in_which_the_scheduler_drops_an_attempt(ask, task, move):
    records = []
    for number, stimulus in enumerate(STIMULI):
        key = f"t-{number}"
        ends = move(2.0, key, "processing>released", f"{stimulus}-1.5")
        records += [task(key), move(1.0, key, "waiting>processing", worker="w1"), ends]
    rows = ask(*records)("SELECT end_reason, outcome FROM _task_runs")
    assert dict(rows) == STIMULI


def test_every_state_of_a_task_is_placed(ask, task, move):
    """Tasks are unfinished in four of Dask's states, and ended in the others."""
    states = get_args(TaskStateState)
    before = {"waiting", "queued", "no-worker", "processing"}
    ended = {"released", "memory", "erred", "forgotten"}
    assert before | ended == set(states)
    records = []
    for state in states:
        records += [task(f"t-{state}"), move(1.0, f"t-{state}", f"released>{state}")]
    query = ask(*records)
    assert {state for (state,) in query("SELECT state FROM task_states")} == set(states)
    assert {state for (state,) in query("SELECT state FROM _task_states")} == before


#: Use of the free threads of a worker by its status; all others are as usual.
STATUSES = {
    "paused": "paused worker",
    "closing": "leaving worker",
    "closing_gracefully": "leaving worker",
}
USUAL = {"undefined", "created", "init", "starting", "running", "stopping", "stopped", "closed",
         "failed", "dont_reply"}  # fmt: skip


def test_every_status_of_a_worker_is_placed(ask, worker):
    names = {
        status.value if isinstance(status.value, str) else status.name for status in Status
    }
    assert names <= STATUSES.keys() | USUAL
    records = []
    for name in sorted(names):
        change = {"action": "worker-status-change", "status": name}
        about = {"topic": name, "worker": name, "payload": change}
        records += [worker(name), {"kind": "event", "t": 0.0, **about}]
    rows = ask(*records)("SELECT worker, use FROM core_time")
    assert dict(rows) == {name: STATUSES.get(name, "before first graph") for name in names}
