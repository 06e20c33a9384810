"""All commands on generated traces that cannot be true: ``make campaign-hostile``.

The traces are those of :mod:`hostile_traces`. Nearly all of the time of a command on a small
trace is that of planning queries, so what can be asked of many traces at once is:

* each trace alone: opened by ``check``, which also shows whether it is refused;
* each trace that can be opened, in a session of :data:`TRACES_PER_SESSION`: all views, among
  them ``findings`` with all rules, and the counts of records. What fails is sought in halves of
  the session until the trace is found;
* each of the other commands with a random 4 % of the traces, refused ones too, or with 6 % if
  it takes less than about a second (:data:`SHARES`): 200 or 300 of 5,000 traces;
* 3 % of these commands once more in a process of their own, which must have the same exit
  code.

Commands run within the process that examines a trace, with their output captured.

Required of each:

* no traceback, no text of a database or a library in an error, one line per error;
* an exit code that the command documents, and no error of a trace that can be opened;
* counts of records: of each kind, as many as were written are read or counted as lost, and
  ``check`` ends with 1 if and only if there is a loss;
* no NaN and no infinity in a view or in JSON;
* no markup of the trace in a page, no control characters in a terminal;
* bounded CPU time and memory. A process that exceeds them, or dies, is a failure of the trace
  and command that it was at, and the campaign continues with the next.

A failure is printed with its seed and command; the trace is reduced to the lines that cause it
and kept. Of failures with the same text only the first :data:`KEPT` are sought and kept; the
others are counted. Ctrl-C or SIGTERM ends the campaign and prints the figures so far. The exit
code is 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import psutil
from tqdm import tqdm

from hostile_traces import (
    CASES_PER_TRACE,
    MARKUP,
    HostileTrace,
    cases,
    hostile_trace,
    samples,
)
from roast_analyze import Trace
from roast_analyze.cli import main as roast_analyze
from roast_analyze.open.tables import quoted
from roast_analyze.open.views import view_names
from roast_schemas.describe import kinds

#: Limits of a command, or of a query of a session; most take 0.1 to 3 s and 500 MiB. Waiting
#: for another process is not CPU time, but must end too.
CPU_SECONDS = 30.0
WALL_SECONDS = 600.0
MEMORY_BYTES = 2 * 2**30
#: Limit of addresses, which are reserved in large pieces: of allocations at once.
ADDRESS_BYTES = 12 * 2**30
#: Limit for reducing a failing trace.
REDUCE_SECONDS = 20.0

#: Traces that are opened together, by one process.
TRACES_PER_SESSION = 50

#: Shares of the traces that commands meet besides ``check``: those that take more than a second
#: of CPU time, and others.
SHARES = (0.04, 0.06)

#: Share of the commands that also run in a process of their own.
SHARE_OF_PROCESSES = 0.03

#: Failures with the same text that are kept.
KEPT = 3

#: Texts of errors of libraries, which mean nothing to a user.
RAW = re.compile(
    r"\b(Conversion|Binder|Invalid Input|Invalid|Out of Range|Internal|INTERNAL|Catalog|Parser|"
    r"Serialization|Transaction\w*|Constraint|Not implemented|Mismatch Type|Cast|Type) Error"
    r"|INT128|HUGEINT|Candidate functions|LINE 1:|ComputeError|ShapeError|numpy|polars|"
    r"Traceback|Could not convert|out of range|Overflow|codec can't|panicked|PanicException"
)
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

#: Exit codes besides 0: 1 is a negative answer, 2 a question that this trace has no answer to.
NEGATIVE = {
    "check": {1},
    "gate": {1, 2},
    "each": {1},
    "store add": {1},
    "scrubbed": {1},
    "check as JSON": {1},
    "export, perfetto": {1},
    "export, folded": {1},
    "export, speedscope": {1},
    "export, parquet": {1},
    "export, duckdb": {1},
}
UNANSWERED = {"what-if": {1, 2}, "why": {2}, "time range": {2}}


@dataclass
class Command:
    """A command line, and files that it writes."""

    name: str
    words: list[str]
    page: Path | None = None
    is_terminal: bool = False
    is_json: bool = False

    @property
    def codes(self) -> set[int]:
        """Exit codes for a trace that can be opened."""
        return {0} | NEGATIVE.get(self.name, set()) | UNANSWERED.get(self.name, set())


@dataclass
class Outcome:
    """What a command did."""

    code: int | None
    output: str
    errors: str
    seconds: float = 0.0
    nbytes: int = 0


@dataclass
class Totals:
    """Counts of the campaign."""

    traces: int = 0
    refused: int = 0
    commands: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    slowest: Counter[str] = field(default_factory=Counter)
    views: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    peak_bytes: int = 0
    is_interrupted: bool = False


def commands(path: Path, other: Path, folder: Path, rng: random.Random) -> Iterator[Command]:
    """Yield some of the commands for a trace; some of them need another trace."""
    trace, out = str(path), str(folder / "out")
    costly, cheap = SHARES
    form = rng.choice(("csv", "json", "jsonl", "markdown"))
    optional = [
        (costly, Command("summary", [trace, "--all"], is_terminal=True)),
        (costly, Command("json", [trace, "--json"], is_json=True)),
        (costly, Command("explain", ["explain", trace], is_terminal=True)),
        (costly, Command("html", [trace, "--html", f"{out}.html"], folder / "out.html")),
        (costly, Command(
            "time range", [trace, "--from", rng.choice(("0", "10", "-5")), "--to", "50"],
            is_terminal=True,
        )),
        (cheap, Command("view", ["view", trace, rng.choice(view_names())], is_terminal=True)),
        (cheap, Command(
            "view, all formats",
            ["view", trace, rng.choice(view_names()), "--format", form, "--limit", "100"],
            is_json=form.startswith("json"),
        )),
        (cheap, Command(
            "view, parquet", ["view", trace, rng.choice(view_names()), "-o", f"{out}.parquet"]
        )),
        (cheap, Command("check as JSON", ["check", trace, "--json"], is_json=True)),
        (cheap, Command("metrics", ["metrics", trace], is_json=True)),
        (cheap, Command("what-if", ["what-if", trace], is_terminal=True)),
        (costly, Command("why", ["why", str(other), trace], is_terminal=True)),
        (costly, Command("comparison", [str(other), trace], is_terminal=True)),
        (costly, Command(
            "comparison page", [str(other), trace, "--html", f"{out}.cmp.html"],
            folder / "out.cmp.html",
        )),
        (costly, Command("gate", ["gate", str(other), "--", trace], is_terminal=True)),
        (cheap, Command("scrub", ["scrub", trace, "-o", f"{out}.jsonl"])),
        (cheap, Command("each", ["each", trace, "SELECT * FROM run"])),
        (costly, Command("store add", ["store", "add", trace, "--to", f"{out}.store"])),
        (cheap, Command("export, perfetto", ["export", trace, "--perfetto", f"{out}.json"])),
        (cheap, Command("export, folded", ["export", trace, "--folded", f"{out}.folded"])),
        (cheap, Command(
            "export, speedscope", ["export", trace, "--speedscope", f"{out}.speedscope"]
        )),
        (costly, Command("export, parquet", ["export", trace, "--parquet", f"{out}.tables"])),
        (costly, Command("export, duckdb", ["export", trace, "--duckdb", f"{out}.duckdb"])),
        (costly, Command("digest", [trace, "--markdown"], is_terminal=True)),
    ]  # fmt: skip
    for share, command in optional:
        if rng.random() < share:
            yield command
            if command.name == "store add":
                yield Command("store", ["sql", f"{out}.store", "SELECT * FROM runs"])
                yield Command("store check", ["store", "check", f"{out}.store"])
            if command.name == "scrub":
                yield Command("scrubbed", ["check", f"{out}.jsonl"], is_terminal=True)


def run(words: list[str]) -> Outcome:
    """Run a command in this process."""
    output, errors = io.StringIO(), io.StringIO()
    measured = Measured()
    code: int | None = None
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = roast_analyze(words)
        except SystemExit as error:
            code = int(error.code or 0)
        except BaseException:  # noqa: BLE001 - any exception is a failure
            errors.write(traceback.format_exc())
    return Outcome(code, output.getvalue(), errors.getvalue(), *measured.until_now())


def run_process(words: list[str]) -> Outcome:
    """Run a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "roast_analyze", *words], capture_output=True, check=False
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


class Measured:
    """CPU time and peak memory of this process, from its creation on."""

    def __init__(self) -> None:
        self._begin = time.process_time()
        with contextlib.suppress(OSError):  # not allowed: the peak is that of the process
            Path("/proc/self/clear_refs").write_text("5")

    def until_now(self) -> tuple[float, int]:
        """Return the seconds and bytes."""
        status = Path("/proc/self/status").read_text()
        peak = re.search(r"VmHWM:\s+(\d+)", status)
        return time.process_time() - self._begin, int(peak[1]) * 1024 if peak else 0


def problem_of(command: Command, outcome: Outcome, *, is_open: bool) -> str:
    """Return what is wrong with an outcome; empty if nothing is."""
    if outcome.code is None:
        lines = outcome.errors.strip().splitlines()
        place = [line.strip() for line in lines if line.startswith("  File")][-1:]
        return f"traceback: {lines[-1][:300]} {' '.join(place)}"
    expected = command.codes if is_open else {2} | (command.codes - {0})
    if outcome.code not in expected:
        return f"exit code {outcome.code}: {outcome.errors[:300]}"
    lines = [line for line in outcome.errors.splitlines() if line != "(0 rows)"]
    if outcome.code == 2 and len(lines) != 1:
        return f"{len(lines)} lines of errors: {outcome.errors[:300]}"
    if any(not line.startswith("roast-analyze: ") for line in lines) and command.name != "each":
        return f"not an error of roast: {outcome.errors[:300]}"
    if raw := RAW.search(outcome.errors):
        return f"raw error {raw[0]!r}: {outcome.errors[:300]}"
    if found := CONTROLS.search(outcome.errors):
        return f"control character {found[0]!r} in errors"
    if command.is_terminal and (found := CONTROLS.search(outcome.output)):
        return f"control character {found[0]!r} in output"
    if command.page and command.page.exists() and MARKUP in command.page.read_text("utf-8"):
        return "markup in the page"
    if command.is_json and outcome.code != 2 and (wrong := json_problem(outcome.output)):
        return wrong
    return cost_problem(outcome.seconds, outcome.nbytes)


def json_problem(text: str) -> str:
    """Return what is wrong with JSON, or with lines of JSON; empty if nothing is."""
    constants: list[str] = []
    try:
        json.loads(text, parse_constant=constants.append)
    except ValueError:
        try:
            for line in text.splitlines():
                json.loads(line, parse_constant=constants.append)
        except ValueError as error:
            return f"not JSON: {error}"
    return f"{constants[0]} in JSON" if constants else ""


def cost_problem(seconds: float, nbytes: int) -> str:
    """Return which limit of time or memory is exceeded; empty if none is."""
    if seconds > CPU_SECONDS:
        return f"{seconds:.0f} s of CPU time"
    if nbytes > MEMORY_BYTES:
        return f"{nbytes / 2**20:.0f} MiB of memory"
    return ""


def count_problems(
    trace: Trace, made: Mapping[Path, HostileTrace], checks: Mapping[Path, Outcome]
) -> dict[Path, str]:
    """Return what is wrong with the counts of opened traces, and with the results of check."""
    accounts = {
        Path(path): ((trace_id, segment), read, unreadable)
        for path, trace_id, segment, read, unreadable in trace.rows(
            "SELECT path, trace_id, segment, records_by_kind, unreadable FROM raw.segments"
        )
    }
    tables = " UNION ALL ".join(
        f"SELECT trace_id, segment, '{kind}', count(*) FROM raw.{quoted(kind)} GROUP BY ALL"
        for kind in kinds()
    )
    in_tables = {(*key, kind): n for *key, kind, n in trace.rows(tables)}
    incomplete = {
        (*key, kind): n
        for *key, kind, n in trace.rows(
            "SELECT trace_id, segment, regexp_extract(detail, '''([^'']*)''', 1), records "
            "FROM raw.damage WHERE reason = 'incomplete records'"
        )
    }
    lost = dict(trace.rows("SELECT trace_id, count(*) FROM loss GROUP BY ALL"))
    duplicates = Counter(identity[0] for identity, *_ in accounts.values())
    left_out = [
        detail
        for (detail,) in trace.rows(
            "SELECT detail FROM raw.damage WHERE reason = 'duplicate segment'"
        )
    ]
    problems = {}
    for path, written in made.items():
        if path.resolve() not in accounts:
            if not any(path.name in detail for detail in left_out):
                problems[path] = "neither read nor left out"
            continue
        identity, read, unreadable = accounts[path.resolve()]
        numbers = {
            kind: in_tables.get((*identity, kind), 0) + incomplete.get((*identity, kind), 0)
            for kind in kinds()
        }
        problem = _count_problem(written, read, unreadable or 0, numbers)
        is_alone = duplicates[identity[0]] == 1 and not any(
            path.name in detail for detail in left_out
        )
        loss = lost.get(identity[0], 0)
        if not problem and is_alone and (checks[path].code == 0) != (loss == 0):
            problem = f"check ends with {checks[path].code}, but loss has {loss} rows"
        if problem:
            problems[path] = problem
    return problems


def _count_problem(
    made: HostileTrace, read: Mapping[str, int], unreadable: int, rows: Mapping[str, int]
) -> str:
    total = sum(read.values()) + unreadable
    if total != len(made.lines):
        return f"{total} of {len(made.lines)} lines counted"
    for kind in kinds():
        sure, unsure, found = made.sure[kind], made.unsure[kind], read.get(kind, 0)
        if not sure <= found <= sure + unsure:
            return f"{found} {kind} read of {sure} (and {unsure} doubtful)"
        if rows[kind] != found:
            return f"{rows[kind]} rows of {kind} of {found} records"
    return ""


def examine(seed: int, folder: Path, known: Counter[str], report: Any) -> tuple[Outcome, bool]:
    """Run commands on a trace alone; return what check did, and whether the trace opens."""
    rng = random.Random(f"commands {seed}")
    made = hostile_trace(seed)
    path, other = folder / f"{seed}.jsonl", folder / "other.jsonl"
    write(path, made.lines)

    report("command", "check")
    command = Command("check", ["check", str(path)], is_terminal=True)
    check = run(command.words)
    report("cost", (check.seconds, check.nbytes))
    is_open = check.code in (0, 1)
    report("opened", is_open)
    if problem := problem_of(command, check, is_open=is_open):
        report("failure", (seed, command.name, problem, made.lines))
    chosen = list(commands(path, other, folder, rng))
    if any(str(other) in command.words for command in chosen):
        write(other, hostile_trace(rng.randrange(seed + 1)).lines)
    for command in chosen:
        report("command", command.name)
        outcome = run(command.words)
        report("cost", (outcome.seconds, outcome.nbytes))
        follows = command.name in ("store", "store check", "scrubbed")
        if follows and outcome.code == 2 and not is_open:
            continue  # there is no store or trace
        is_known = is_open or follows or command.name == "scrub"
        problem = problem_of(command, outcome, is_open=is_known)
        if not problem and not follows and rng.random() < SHARE_OF_PROCESSES:
            for written in folder.glob("out.*"):
                shutil.rmtree(written) if written.is_dir() else written.unlink()
            report("command", "a process")
            again = run_process(command.words)
            report("cost", (0.0, 0))
            problem = problem_of(command, again, is_open=is_known)
            if not problem and again.code != outcome.code:
                problem = f"exit code {again.code} in a process, but {outcome.code} here"
        if problem:
            lines = made.lines
            known[signature := signature_of(problem)] += 1
            if known[signature] <= KEPT:
                lines = reduced(lines, path, command, problem, is_open=is_known)
                write(path, made.lines)
            words = " ".join(command.words).replace(str(folder), "")
            report("failure", (seed, words, problem, lines))
    return check, is_open


def examine_together(
    checks: Mapping[int, Outcome],
    views: Sequence[str],
    folder: Path,
    known: Counter[str],
    report: Any,
) -> set[str]:
    """Query views of some traces in one session, and what fails in each half of them.

    The traces are those of `checks`, by seed. Return the failures of the session; those that
    are known well enough are only counted.
    """
    made = {folder / f"{seed}.jsonl": hostile_trace(seed) for seed in checks}
    for path, trace in made.items():
        write(path, trace.lines)
    broken: dict[str, tuple[str, str]] = {}  # a view and a problem by signature
    measured = Measured()
    report("command", "Trace(*paths)")
    try:
        with Trace(*made, cache=False) as session:
            report("cost", measured.until_now())
            results = {path: checks[int(path.stem)] for path in made}
            for path, problem in count_problems(session, made, results).items():
                report("failure", (int(path.stem), "counts", problem, made[path].lines))
            for view in views:
                measured = Measured()
                report("command", f"FROM {view}")
                problem = view_problem(session, view)
                seconds, nbytes = measured.until_now()
                report("cost", (seconds, nbytes))
                if problem := problem or cost_problem(seconds, nbytes):
                    broken.setdefault(signature_of(problem), (view, problem))
    except Exception as error:  # noqa: BLE001 - any exception is a failure
        problem = f"{type(error).__name__}: {error}"[:300]
        broken[signature_of(problem)] = ("", problem)
    if not broken:
        return set()
    if len(checks) == 1:
        [seed] = checks
        for view, problem in broken.values():
            lines = hostile_trace(seed).lines
            report("failure", (seed, f"FROM {view}" if view else "open", problem, lines))
        return set(broken)
    new = {name: view for name, (view, _) in broken.items() if known[name] < KEPT}
    known.update(broken)
    found = set(broken) - set(new)
    if new:
        seeds = list(checks)
        # Without a view, the session cannot be opened.
        sought = views if "" in new.values() else sorted(set(new.values()))
        for part in (seeds[: len(seeds) // 2], seeds[len(seeds) // 2 :]):
            some = {seed: checks[seed] for seed in part}
            found |= examine_together(some, sought, folder, Counter(), report)
    for name, (view, problem) in broken.items():
        if name in new and name in found:
            continue  # reported for a trace
        what = f"FROM {view}, in a session of {len(checks)}"
        lines = [line for trace in made.values() for line in trace.lines]
        report("failure", (next(iter(checks)), what, problem, lines))
    return set(broken)


def view_problem(session: Trace, view: str) -> str:
    """Return what is wrong with the rows of a view; empty if nothing is."""
    try:
        columns, rows = session.columns_and_rows(f"FROM {view}")
    except Exception as error:  # noqa: BLE001 - any exception is a failure
        return f"{type(error).__name__}: {error}"[:300]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            if isinstance(value, float) and not math.isfinite(value):
                return f"{value} in {view}.{column}"
    return ""


def signature_of(problem: str) -> str:
    """Return what a problem has in common with those of other traces."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|[0-9.]+", "N", problem)[:100]


def write(path: Path, lines: list[bytes]) -> None:
    """Write the lines of a trace."""
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def reduced(
    lines: list[bytes], path: Path, command: Command, problem: str, *, is_open: bool
) -> list[bytes]:
    """Return few lines with which a command still fails in the same way."""
    until = time.monotonic() + REDUCE_SECONDS

    def fails(some: list[bytes]) -> bool:
        write(path, some)
        return problem_of(command, run(command.words), is_open=is_open)[:30] == problem[:30]

    size = len(lines) // 2
    while size and time.monotonic() < until:
        begin = 0
        while begin < len(lines) and time.monotonic() < until:
            fewer = lines[:begin] + lines[begin + size :]
            if fewer and fails(fewer):
                lines = fewer
            else:
                begin += size
        size //= 2
    write(path, lines)
    return lines


# -- processes -----------------------------------------------------------------------------


@dataclass
class Job:
    """Traces that a process examines: each alone unless `checks` are given, then together.

    Attributes
    ----------
    seeds : list of int
    checks : dict, optional
        What check did with traces that have been examined alone.
    views : list of str
        Views to query.
    """

    seeds: list[int]
    checks: dict[int, Outcome] = field(default_factory=dict)
    views: list[str] = field(default_factory=lambda: list(view_names()))


def serve(job: Job, known: Counter[str], pipe: Connection, folder: Path) -> None:
    """Examine the traces of a job in this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the campaign ends its processes
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))

    def report(what: str, value: Any) -> None:
        pipe.send((what, value))

    checks = dict(job.checks)
    for seed in job.seeds:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        report("trace", seed)
        check, is_open = examine(seed, folder, known, report)
        if is_open:
            checks[seed] = replace(check, output="")
            report("checked", (seed, checks[seed]))
        report("examined", seed)
    report("together", None)
    if checks:
        examine_together(checks, job.views, folder, known, report)
    report("end", None)
    pipe.close()


class Worker:
    """A process that examines traces, and what it last reported."""

    def __init__(self, job: Job, known: Counter[str], folder: Path) -> None:
        self.job, self.folder = job, folder
        self.seed, self.command = -1, ""
        self.examined: list[int] = []
        self.checks = dict(job.checks)
        self.is_together = not job.seeds
        self.has_ended = False
        self.pipe, theirs = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=serve, args=(job, known, theirs, folder))
        self.process.start()
        theirs.close()
        self.excess = ""
        self.reported()

    def reported(self) -> None:
        """Begin to measure the time until the next report."""
        self._since, self._cpu_since = time.monotonic(), self._cpu_seconds()

    def end_if_slow(self) -> None:
        """End the process if it exceeds a limit of time; note which."""
        wall = time.monotonic() - self._since
        cpu = self._cpu_seconds() - self._cpu_since
        # A command that ends is judged by itself: this is for one that would not.
        if wall > WALL_SECONDS or cpu > 2 * CPU_SECONDS + REDUCE_SECONDS:
            self.excess = f"no end after {cpu:.0f} s of CPU time"
            self.process.kill()

    def _cpu_seconds(self) -> float:
        try:
            times = psutil.Process(self.process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

    def rest(self) -> Iterator[Job]:
        """Yield what remains to be examined after the process has died."""
        job = self.job
        if not self.is_together:
            later = [s for s in job.seeds if s not in self.examined and s != self.seed]
            if later or self.checks:
                yield Job(later, self.checks, job.views)
        elif len(self.checks) > 1:
            # The trace that ends the process is among them.
            items = list(self.checks.items())
            for part in (items[: len(items) // 2], items[len(items) // 2 :]):
                yield Job([], dict(part), job.views)
        elif self.command.removeprefix("FROM ") in job.views:
            at = job.views.index(self.command.removeprefix("FROM "))
            if later_views := job.views[at + 1 :]:
                yield Job([], self.checks, later_views)


def campaign(seeds: list[int], processes: int, kept: Path) -> Totals:
    """Examine all traces."""
    totals = Totals()
    waiting = [
        Job(seeds[i : i + TRACES_PER_SESSION]) for i in range(0, len(seeds), TRACES_PER_SESSION)
    ]
    waiting.reverse()
    workers: list[Worker] = []

    def fail(seed: int, command: str, problem: str, lines: list[bytes]) -> None:
        totals.failures[signature := signature_of(problem)] += 1
        if totals.failures[signature] > KEPT:
            return
        path = kept / f"{seed}-{sum(totals.failures.values())}.jsonl"
        write(path, lines)
        shown = [line[:300].decode("utf-8", "replace") for line in lines[:5]]
        bar.write(f"seed {seed}: {command}: {problem}\n  {path}", file=sys.stderr)
        if len(lines) <= len(shown):
            bar.write("".join(f"  {line}\n" for line in shown), file=sys.stderr)

    with tqdm(total=len(seeds)) as bar, tempfile.TemporaryDirectory() as scratch:
        # Of all processes, so that only the first creates the templates of databases.
        os.environ["ROAST_CACHE_DIR"] = str(Path(scratch) / "cache")
        try:
            while waiting or workers:
                while waiting and len(workers) < processes:
                    folder = Path(tempfile.mkdtemp(dir=scratch))
                    workers.append(Worker(waiting.pop(), totals.failures.copy(), folder))
                ready = wait([worker.pipe for worker in workers], timeout=1.0)
                for worker in [w for w in workers if w.pipe in ready]:
                    try:
                        what, value = worker.pipe.recv()
                    except EOFError:
                        worker.process.join()
                        workers.remove(worker)
                        shutil.rmtree(worker.folder, ignore_errors=True)
                        if not worker.has_ended:
                            bar.update(not worker.is_together)
                            died(worker, fail)
                            waiting.extend(worker.rest())
                        continue
                    worker.reported()
                    record(what, value, worker, totals, fail)
                    bar.update(what == "examined")
                for worker in workers:
                    worker.end_if_slow()
        except KeyboardInterrupt:
            totals.is_interrupted = True
            for worker in workers:
                worker.process.kill()
                worker.process.join()
    return totals


def died(worker: Worker, fail: Any) -> None:
    """Report the trace at which a process has died, if it is known."""
    problem = worker.excess or f"process ended with {worker.process.exitcode}"
    if not worker.is_together:
        fail(worker.seed, worker.command, problem, hostile_trace(worker.seed).lines)
    elif len(worker.checks) == 1:
        [seed] = worker.checks
        fail(seed, worker.command, problem, hostile_trace(seed).lines)


def record(what: str, value: Any, worker: Worker, totals: Totals, fail: Any) -> None:
    """Count what a process reports."""
    if what == "trace":
        worker.seed = value
        totals.traces += 1
    elif what == "command":
        worker.command = value
        totals.commands[_row(value)] += 1
        if value.startswith("FROM "):
            totals.views[value.removeprefix("FROM ")] += len(worker.checks)
    elif what == "cost":
        seconds, nbytes = value
        name = _row(worker.command)
        totals.seconds[name] += seconds
        totals.slowest[name] = max(totals.slowest[name], seconds)
        totals.peak_bytes = max(totals.peak_bytes, nbytes)
    elif what == "opened":
        totals.refused += not value
    elif what == "checked":
        seed, check = value
        worker.checks[seed] = check
    elif what == "examined":
        worker.examined.append(value)
    elif what == "together":
        worker.is_together = True
    elif what == "failure":
        fail(*value)
    elif what == "end":
        worker.has_ended = True


def _row(command: str) -> str:
    return "view of a session" if command.startswith("FROM ") else command


def main() -> int:
    """Run the campaign and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--traces", type=int, default=5_000, metavar="N")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of the first trace"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N")
    options = parser.parse_args()
    kept = Path(tempfile.mkdtemp(prefix="roast-hostile-"))
    # As Ctrl-C, which a process in the background ignores.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    samples()  # before the processes are forked
    begin = time.monotonic()
    seeds = list(range(options.seed, options.seed + options.traces))
    totals = campaign(seeds, options.processes, kept)
    print(f"{totals.traces:,} traces, {totals.refused:,} of them refused, "
          f"{sum(totals.commands.values()):,} commands, {time.monotonic() - begin:.0f} s, "
          f"{sum(totals.seconds.values()):.0f} s of CPU time, "
          f"peak memory {totals.peak_bytes / 2**20:.0f} MiB")  # fmt: skip
    print(f"{min(CASES_PER_TRACE * totals.traces / len(cases()), 1):.0%} of {len(cases()):,} "
          "cases of a kind, a field and an impossible value")  # fmt: skip
    print("| command | runs | CPU time (s) | slowest (s) |\n| --- | --- | --- | --- |")
    for name, number in sorted(totals.commands.items()):
        print(f"| {name} | {number:,} | {totals.seconds[name]:.0f} | "
              f"{totals.slowest[name]:.1f} |")  # fmt: skip
    if totals.views:
        fewest = min(totals.views[name] for name in view_names())
        print(f"each of {len(view_names())} views: of at least {fewest:,} traces")
    for problem, number in totals.failures.most_common():
        print(f"{number} × {problem}")
    if totals.failures:
        print(f"{sum(totals.failures.values())} failures; their traces are in {kept}")
    if totals.is_interrupted:
        print("interrupted")
        return 130
    return int(bool(totals.failures))


if __name__ == "__main__":
    sys.exit(main())
