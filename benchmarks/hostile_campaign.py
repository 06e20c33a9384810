"""All commands on generated traces that cannot be true: ``make campaign-hostile``.

The traces are those of :mod:`hostile_traces`. Each is given to ``check`` and to some of the
other commands. All views are queried in sessions of many traces, since most of the time of a
view of a small trace is that of planning it; a failure is then sought in halves of the session.
Required of each:

* no traceback, no text of a database or a library in an error, one line per error;
* an exit code that the command documents, and no error of a trace that can be opened;
* counts of records: of each kind, as many as were written are read or counted as lost;
* no markup of the trace in a page, no control characters in a terminal;
* bounded CPU time and memory.

A failure is printed with its seed and command; the trace is reduced to the lines that cause it
and kept. The exit code is 1 if there was one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tqdm import tqdm

from hostile_traces import MARKUP, HostileTrace, hostile_trace, samples
from roast_analyze import Trace
from roast_analyze.cli import main as roast_analyze
from roast_analyze.errors import TraceError
from roast_analyze.open.views import view_names
from roast_schemas.describe import kinds

#: Limits of a command; most take 0.1 to 3 s and less than 1 GiB.
CPU_SECONDS = 30.0
WALL_SECONDS = 300.0
MEMORY_BYTES = 6 * 2**30
#: Limit for reducing a failing trace.
REDUCE_SECONDS = 60.0

#: Traces that a process examines, so that leaks do not add up.
TRACES_PER_PROCESS = 100

#: Traces of a session in which all views are queried.
TRACES_PER_SESSION = 25

#: Share of the traces that each of the commands meets, besides ``check``.
SHARE = 0.1

#: Texts of errors of libraries, which mean nothing to a user.
RAW = re.compile(
    r"\b(Conversion|Binder|Invalid Input|Invalid|Out of Range|Internal|INTERNAL|Catalog|Parser|"
    r"Serialization|Transaction\w*|Constraint|Not implemented|Mismatch Type|Cast|Type) Error"
    r"|INT128|HUGEINT|Candidate functions|LINE 1:|ComputeError|ShapeError|numpy|polars|"
    r"Traceback|Could not convert|out of range|Overflow|codec can't"
)
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

#: Exit codes besides 0: 1 is a negative answer, 2 a question that this trace has no answer to.
NEGATIVE = {
    "check": {1},
    "gate": {1, 2},
    "each": {1},
    "store add": {1},
    "export": {1},
    "scrubbed": {1},
}
UNANSWERED = {"what-if": {1, 2}, "why": {2}}


@dataclass
class Command:
    """A command line, and files that it writes."""

    name: str
    words: list[str]
    page: Path | None = None
    is_terminal: bool = False

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
    seconds: float


@dataclass
class Totals:
    """Counts of the campaign."""

    traces: int = 0
    refused: int = 0
    commands: Counter[str] = field(default_factory=Counter)
    views: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, tuple[float, int]] = field(default_factory=dict)
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    peak_bytes: int = 0


def commands(path: Path, other: Path, folder: Path, rng: random.Random) -> Iterator[Command]:
    """Yield the commands for a trace; some need another trace."""
    trace, out = str(path), str(folder / "out")
    optional = [
        Command("summary", [trace], is_terminal=True),
        Command("explain", ["explain", trace], is_terminal=True),
        Command("html", [trace, "--html", f"{out}.html"], folder / "out.html"),
        Command("json", [trace, "--json"]),
        Command(
            "time range", [trace, "--from", rng.choice(("0", "10", "-5")), "--to", "50"],
            is_terminal=True,
        ),
        Command("view", ["view", trace, rng.choice(view_names())], is_terminal=True),
        Command(
            "view, all formats",
            ["view", trace, rng.choice(view_names()), "--format",
             rng.choice(("csv", "json", "jsonl", "markdown")), "--limit", "100"],
        ),
        Command(
            "view, parquet", ["view", trace, rng.choice(view_names()), "-o", f"{out}.parquet"]
        ),
        Command("metrics", ["metrics", trace]),
        Command("what-if", ["what-if", trace], is_terminal=True),
        Command("why", ["why", str(other), trace], is_terminal=True),
        Command("comparison", [str(other), trace], is_terminal=True),
        Command(
            "comparison page", [str(other), trace, "--html", f"{out}.cmp.html"],
            folder / "out.cmp.html",
        ),
        Command("gate", ["gate", str(other), "--", trace], is_terminal=True),
        Command("scrub", ["scrub", trace, "-o", f"{out}.jsonl"]),
        Command("each", ["each", trace, "SELECT * FROM run"]),
        Command("store add", ["store", "add", trace, "--to", f"{out}.store", "--workers", "1"]),
        *(
            Command("export", ["export", trace, f"--{form}", f"{out}.{form}"])
            for form in ("perfetto", "speedscope", "folded", "parquet", "duckdb")
        ),
    ]  # fmt: skip
    for command in optional:
        if rng.random() < SHARE:
            yield command
            if command.name == "store add":
                yield Command("store", ["sql", f"{out}.store", "SELECT * FROM runs"])
                yield Command("store", ["store", "check", f"{out}.store"])
            if command.name == "scrub":
                yield Command("scrubbed", ["check", f"{out}.jsonl"], is_terminal=True)


def run(words: list[str]) -> Outcome:
    """Run a command in this process."""
    output, errors = io.StringIO(), io.StringIO()
    begin = time.process_time()
    code: int | None = None
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = roast_analyze(words)
        except SystemExit as error:
            code = int(error.code or 0)
        except BaseException:  # noqa: BLE001 - any exception is a failure
            errors.write(traceback.format_exc())
    return Outcome(code, output.getvalue(), errors.getvalue(), time.process_time() - begin)


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
    if outcome.seconds > CPU_SECONDS:
        return f"{outcome.seconds:.0f} s of CPU time"
    return ""


def count_problem(path: Path, made: HostileTrace, check: Outcome) -> tuple[bool, str]:
    """Return whether the trace opens, and what is wrong with its counts."""
    sure, unsure = made.sure, made.unsure
    try:
        with Trace(path, cache=False) as trace:
            [(read, unreadable)] = trace.rows(
                "SELECT map_from_entries(flatten(list(map_entries(records_by_kind)))), "
                "sum(unreadable)::BIGINT FROM raw.segments"
            )
            tables = " UNION ALL ".join(
                f"SELECT '{kind}', count(*) FROM raw.\"{kind}\"" for kind in kinds()
            )
            rows = dict(trace.rows(tables))
            incomplete = dict(
                trace.rows(
                    "SELECT regexp_extract(detail, '''([^'']*)''', 1), records "
                    "FROM raw.damage WHERE reason = 'incomplete records'"
                )
            )
            loss = trace.rows("SELECT count(*) FROM loss")[0][0]
    except TraceError as error:
        wrong = RAW.search(str(error)) or "\n" in str(error)
        return False, f"refused with {error}" if wrong else ""
    except Exception as error:  # noqa: BLE001 - any other exception is a failure
        return False, f"counts: {error!r}"[:300]
    total = sum(read.values()) + (unreadable or 0)
    if total != len(made.lines):
        return True, f"{total} of {len(made.lines)} lines counted"
    for kind in sure | unsure:
        found = read.get(kind, 0)
        if kind in kinds() and not sure[kind] <= found <= sure[kind] + unsure[kind]:
            return True, f"{found} {kind} read of {sure[kind]} (and {unsure[kind]} doubtful)"
    for kind, number in rows.items():
        if number + incomplete.get(kind, 0) != read.get(kind, 0):
            return True, f"{number} rows of {kind} of {read.get(kind, 0)} records"
    if (check.code == 0) != (loss == 0):
        return True, f"check ends with {check.code}, but loss has {loss} rows"
    return True, ""


def examine(seed: int, folder: Path, report: Any) -> bool:
    """Run the commands on a trace, and report each failure with the lines that cause it.

    Return whether the trace can be opened.
    """
    rng = random.Random(f"commands {seed}")
    made = hostile_trace(seed)
    path, other = folder / "trace.jsonl", folder / "other.jsonl"
    write(path, made.lines)
    write(other, hostile_trace(rng.randrange(seed + 1)).lines)
    report("command", "check")
    command = Command("check", ["check", str(path)], is_terminal=True)
    check = run(command.words)
    is_open, wrong = count_problem(path, made, check)
    report("opened", is_open)
    if wrong:
        report("failure", ("counts", wrong, made.lines))
    if problem := problem_of(command, check, is_open=is_open):
        report("failure", (command.name, problem, made.lines))
    for command in commands(path, other, folder, rng):
        report("command", command.name)
        outcome = run(command.words)
        report("seconds", outcome.seconds)
        is_known = is_open or command.name in ("store", "scrubbed", "scrub")
        if problem := problem_of(command, outcome, is_open=is_known):
            if command.name in ("store", "scrubbed") and outcome.code == 2 and not is_open:
                continue  # there is none
            lines = reduced(made.lines, path, command, problem, is_open=is_known)
            report(
                "failure", (" ".join(command.words).replace(str(folder), ""), problem, lines)
            )
    return is_open


def examine_views(seeds: list[int], folder: Path, report: Any) -> None:
    """Query all views in a session of some traces, and report the traces that break them."""
    for view in broken_views(seeds, view_names(), folder, report):
        some = seeds
        while len(some) > 1:
            half = some[: len(some) // 2]
            some = half if broken_views(half, [view], folder) else some[len(half) :]
        problem = broken_views(some, [view], folder).get(view)
        if problem is None:
            some, problem = seeds, "breaks only with several traces"
        lines = [line for seed in some for line in hostile_trace(seed).lines]
        report("seed", some[0])
        report("failure", (f"FROM {view}", problem, lines))


def broken_views(
    seeds: list[int], views: Collection[str], folder: Path, report: Any = None
) -> dict[str, str]:
    """Query views in a session of some traces; return the errors by view."""
    broken: dict[str, str] = {}
    paths = []
    for seed in seeds:
        paths.append(folder / f"{seed}.jsonl")
        write(paths[-1], hostile_trace(seed).lines)
    with Trace(*paths, cache=False) as session:
        for view in views:
            begin = time.process_time()
            if report:
                report("command", f"FROM {view}")
            try:
                session.rows(f"FROM {view}")
            except Exception as error:  # noqa: BLE001 - any exception is a failure
                broken[view] = f"{type(error).__name__}: {error}"[:300]
            if report:
                report("seconds", time.process_time() - begin)
    return broken


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


def serve(seeds: list[int], pipe: Connection, folder: Path) -> None:
    """Examine some traces in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.environ["ROAST_CACHE_DIR"] = str(folder / "cache")

    def report(what: str, value: Any) -> None:
        pipe.send((what, value))

    together: list[int] = []
    for seed in seeds:
        for path in folder.iterdir():
            if path.name != "cache":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        pipe.send(("seed", seed))
        if examine(seed, folder, report):
            together.append(seed)
        if together and (len(together) == TRACES_PER_SESSION or seed == seeds[-1]):
            examine_views(together, folder, report)
            together = []
        pipe.send(("memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))
    pipe.send(("end", None))
    pipe.close()


@dataclass
class Worker:
    """A process that examines traces, and what it last reported."""

    seeds: list[int]
    folder: Path
    seed: int = -1
    command: str = ""
    since: float = field(default_factory=time.monotonic)
    has_ended: bool = False

    def __post_init__(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=serve, args=(self.seeds, theirs, self.folder))
        self.process.start()
        theirs.close()


def campaign(seeds: list[int], processes: int, kept: Path) -> Totals:
    """Examine all traces."""
    totals = Totals()
    waiting = [
        seeds[i : i + TRACES_PER_PROCESS] for i in range(0, len(seeds), TRACES_PER_PROCESS)
    ]
    waiting.reverse()
    workers: list[Worker] = []
    with tqdm(total=len(seeds)) as bar, tempfile.TemporaryDirectory() as scratch:

        def fail(seed: int, command: str, problem: str, lines: list[bytes]) -> None:
            totals.failures.append((seed, command, problem))
            path = kept / f"{seed}-{len(totals.failures)}.jsonl"
            write(path, lines)
            shown = [line[:300].decode("utf-8", "replace") for line in lines[:5]]
            bar.write(f"seed {seed}: {command}: {problem}\n  {path}", file=sys.stderr)
            if len(lines) <= len(shown):
                bar.write("".join(f"  {line}\n" for line in shown), file=sys.stderr)

        while waiting or workers:
            while waiting and len(workers) < processes:
                folder = Path(tempfile.mkdtemp(dir=scratch))
                workers.append(Worker(waiting.pop(), folder))
            ready = wait([worker.pipe for worker in workers], timeout=1.0)
            for worker in [w for w in workers if w.pipe in ready]:
                try:
                    what, value = worker.pipe.recv()
                except EOFError:
                    worker.process.join()
                    workers.remove(worker)
                    shutil.rmtree(worker.folder, ignore_errors=True)
                    if not worker.has_ended:
                        code = worker.process.exitcode
                        lines = hostile_trace(worker.seed).lines
                        fail(worker.seed, worker.command, f"process ended with {code}", lines)
                        rest = [seed for seed in worker.seeds if seed > worker.seed]
                        bar.update()
                        if rest:
                            waiting.append(rest)
                    continue
                worker.since = time.monotonic()
                if what == "seed":
                    worker.seed = value
                elif what == "command":
                    worker.command = value
                    is_view = value.startswith("FROM ")
                    totals.commands["sql" if is_view else value] += 1
                    if is_view:
                        totals.views[value.removeprefix("FROM ")] += 1
                elif what == "seconds":
                    slowest = totals.slowest.get(worker.command, (0.0, 0))
                    totals.slowest[worker.command] = max(slowest, (value, worker.seed))
                elif what == "opened":
                    totals.traces += 1
                    totals.refused += not value
                elif what == "failure":
                    fail(worker.seed, *value)
                elif what == "memory":
                    totals.peak_bytes = max(totals.peak_bytes, value)
                    bar.update()
                elif what == "end":
                    worker.has_ended = True
            for worker in workers:
                if time.monotonic() - worker.since > WALL_SECONDS:
                    worker.process.kill()
                    worker.since = time.monotonic()
    return totals


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
    samples()  # before the processes are forked
    begin = time.monotonic()
    seeds = list(range(options.seed, options.seed + options.traces))
    totals = campaign(seeds, options.processes, kept)
    print(f"{totals.traces:,} traces, {totals.refused:,} of them refused, "
          f"{sum(totals.commands.values()):,} commands, {time.monotonic() - begin:.0f} s, "
          f"peak memory {totals.peak_bytes / 2**20:.0f} MiB")  # fmt: skip
    print("| command | runs | slowest (CPU s) |\n| --- | --- | --- |")
    for name, number in sorted(totals.commands.items()):
        seconds, _ = max(
            (value for key, value in totals.slowest.items()
             if key == name or (name == "sql" and key.startswith("FROM "))),
            default=(0.0, 0),
        )  # fmt: skip
        print(f"| {name} | {number:,} | {seconds:.1f} |")
    if totals.views:
        fewest = min(totals.views[name] for name in view_names())
        print(f"each of {len(view_names())} views in SQL: at least {fewest} times")
    kinds_of = Counter(
        re.sub(r"[0-9]+", "N", f"{c.split()[0]}: {p[:80]}") for _, c, p in totals.failures
    )
    for problem, number in kinds_of.most_common():
        print(f"{number} × {problem}")
    if totals.failures:
        print(f"{len(totals.failures)} failures; their traces are in {kept}")
    return int(bool(totals.failures))


if __name__ == "__main__":
    sys.exit(main())
