"""Time of a run that no finding explains, and what had not ended.

Thread time counts as explained if it computed a result that was kept, for the first time, or a
method of an actor, or if a finding accounts for its use: the cost of a finding is distributed
over the uses that its rule declares (``-- Explains:``), in this order. The first ones are those
that the rule measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.computed.rules import rules
from roast_analyze.report import quantities as q
from roast_analyze.report.core_time_uses import USES
from roast_analyze.report.run import query_obstacle, query_uses
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roast_analyze.open.session import Session
    from roast_analyze.report.findings import Finding

#: Uses of threads that need no explanation.
_KEPT: Final = "kept result"
_ACTOR: Final = "actor method"
#: The part of it that computed keys again, which rules can explain although it is no use of
#: view ``core_time``.
REPEATED: Final = "repeated result"
_WORDS: Final = {use: meaning.words for use, meaning in USES.items()} | {
    REPEATED: "computing keys again whose result had been kept before"
}
#: Shares of the core time below which a part is not named, and all of it is not mentioned.
_NAMED_SHARE: Final = 0.01
_MENTIONED_SHARE: Final = 0.05
#: Number of uses that are named.
_NAMED_USES: Final = 3
_KEY_CHARACTERS: Final = 60

#: Results that were kept although an earlier attempt at the key had a kept result, too.
_REPEATED: Final = """
SELECT coalesce(sum(compute_seconds), 0), count(DISTINCT key), count(*)
FROM (
    SELECT
        key,
        compute_seconds,
        row_number() OVER (PARTITION BY trace_id, key ORDER BY attempt) AS place
    FROM task_runs
    SEMI JOIN (FROM task_runs WHERE attempt > 1) AS again USING (trace_id, key)
    WHERE kept
)
WHERE place > 1
"""
#: Of several programs, the thread time between graphs while one submits tasks: the rest is
#: that between programs. Null if there is one program.
_BETWEEN_GRAPHS: Final = """
SELECT sum(between_seconds) FROM _bucket_uses
WHERE (SELECT count(*) FROM _client_sessions WHERE client IS NOT NULL) > 1
"""
#: Thread time without a client that submitted tasks, before the first graph and after the last
#: result, as on the scheduler of a site: it is nobody's.
_CLIENTLESS: Final = """
SELECT
    coalesce(sum(seconds) FILTER (period.stop_t <= first_t), 0),
    coalesce(sum(seconds) FILTER (period.start_t >= last_t), 0)
FROM (
    SELECT
        trace_id,
        period.start_t,
        period.stop_t,
        nthreads * (least(to_t, period.stop_t) - greatest(from_t, period.start_t)) AS seconds
    FROM (FROM _wall_time WHERE state = 'no client') AS period
    INNER JOIN _worker_presence AS presence USING (trace_id)
    WHERE from_t < period.stop_t AND to_t > period.start_t
) AS period
INNER JOIN (
    SELECT trace_id, min(processing_t) AS first_t, max(end_t) AS last_t
    FROM _task_runs
    GROUP BY trace_id
) USING (trace_id)
"""
#: Of the attempts that had not ended: their number, and the one that was assigned first.
_UNFINISHED: Final = """
SELECT
    run.key,
    coalesce(names.shown, run.worker),
    stop_t - greatest(coalesce(run.processing_t, start_t), start_t) AS seconds,
    count(*) OVER () AS attempts
FROM task_runs AS run
INNER JOIN (SELECT trace_id, start_t, stop_t FROM _cluster_size) USING (trace_id)
LEFT JOIN _worker_names AS names USING (trace_id, worker)
WHERE outcome = 'unfinished'
ORDER BY seconds DESC, run.key
LIMIT 1
"""
#: Hosts whose cores were in use, with the CPU use of the processes that were sampled.
_LOADED_HOSTS: Final = """
SELECT
    host,
    if(is_sampled, reason, NULL),
    1000 * interval_seconds,
    used_cores,
    cores
FROM _host_load
WHERE is_loaded
ORDER BY interval_seconds DESC, host
"""

#: Name, reason, interval in ms, used cores and cores of a host, each if known.
_LoadedHost = tuple[str, str | None, float | None, float | None, float | None]


@dataclass(frozen=True)
class Unexplained:
    """Thread time without an explanation, and what had not ended.

    Attributes
    ----------
    core_seconds : float
        Thread time of the run.
    kept_seconds : float
        Thread time that computed results that were kept, also those computed again.
    uses : mapping of str to float
        Thread time by use that no finding accounts for, the largest first.
    repeated_keys, repeated_attempts
        Results that were computed again although an earlier one of the key had been kept.
    unfinished_attempts : int
        Attempts that had not ended when the recording did.
    unfinished_key, unfinished_worker, unfinished_seconds
        The one of them that had been assigned for the longest time.
    loaded_hosts : sequence of tuple
        Hosts without free cores: name, reason if the host was sampled, else the interval of the
        most punctual event loop in ms, cores that the processes used, and cores of the host.
    obstacle : str
        Why nothing can be concluded from this trace; empty if it can.
    """

    core_seconds: float
    kept_seconds: float
    uses: Mapping[str, float]
    repeated_keys: int = 0
    repeated_attempts: int = 0
    unfinished_attempts: int = 0
    unfinished_key: str = ""
    unfinished_worker: str = ""
    unfinished_seconds: float = 0.0
    loaded_hosts: Sequence[_LoadedHost] = ()
    obstacle: str = ""

    @property
    def is_little(self) -> bool:
        """Whether hardly any time is unexplained, all attempts ended and no host was loaded."""
        return (
            not self.obstacle
            and not self.unfinished_attempts
            and not self.loaded_hosts
            and self.seconds < _MENTIONED_SHARE * max(self.core_seconds, 1e-9)
        )

    @property
    def seconds(self) -> float:
        """Thread time without an explanation."""
        return sum(self.uses.values())


def query(trace: Session, found: Iterable[Finding]) -> Unexplained:
    """Return what the findings of a trace do not explain."""
    found = tuple(found)
    starved = {finding.entity for finding in found if finding.id == "starved-host"}
    uses = dict(query_uses(trace))
    core_seconds = sum(uses.values())
    obstacle = query_obstacle(trace)
    [(between_seconds,)] = trace.rows(_BETWEEN_GRAPHS)
    if between_seconds is not None and "between graphs" in uses:
        between_programs = uses["between graphs"] - between_seconds
        uses["between graphs"] -= max(between_programs, 0.0)
    [(before_seconds, after_seconds)] = trace.rows(_CLIENTLESS)
    for use, clientless_seconds in (
        ("before first graph", before_seconds),
        ("after last result", after_seconds),
    ):
        if use in uses:
            uses[use] = max(uses[use] - clientless_seconds, 0.0)
    [(seconds, keys, attempts)] = trace.rows(_REPEATED)
    [(key, worker, assigned_seconds, unfinished)] = trace.rows(_UNFINISHED) or [
        ("", "", 0.0, 0)
    ]
    return Unexplained(
        core_seconds=core_seconds,
        kept_seconds=uses.get(_KEPT, 0.0),
        uses=_remaining({**uses, REPEATED: seconds}, found),
        repeated_keys=keys,
        repeated_attempts=attempts,
        unfinished_attempts=unfinished,
        unfinished_key=visible(key),
        unfinished_worker=visible(worker or ""),
        unfinished_seconds=assigned_seconds,
        # A finding has described the others, for the time with tasks.
        loaded_hosts=[
            row
            for row in trace.rows(_LOADED_HOSTS)
            if visible(row[0]) not in starved and not obstacle
        ],
        obstacle=obstacle,
    )


def _remaining(uses: Mapping[str, float], found: Iterable[Finding]) -> dict[str, float]:
    """Return the seconds of each use that remain after the costs of all findings."""
    explains = {rule.id: rule.explains for rule in rules()}
    rest = {use: seconds for use, seconds in uses.items() if use not in (_KEPT, _ACTOR)}
    for finding in found:
        # A finding without a cost, such as of a task that failed for good, explains the use.
        cost = math.inf if finding.core_seconds is None else finding.core_seconds
        for use in explains[finding.id]:
            used = min(cost, rest.get(use, 0.0))
            cost -= used
            if use in rest:
                rest[use] -= used
    return dict(sorted(rest.items(), key=lambda item: -item[1]))


def describe(time: Unexplained, *, has_findings: bool) -> str:
    """Describe the time without an explanation; empty if findings leave little of it.

    A run without findings always has a text.
    """
    if time.obstacle and not has_findings:
        return f"Possible savings cannot be judged: {time.obstacle}."
    if has_findings and time.is_little:
        return ""
    texts = []
    if not has_findings:
        texts.append("No rule found a change that could save 1 % of this run or more.")
    if time.core_seconds and time.seconds >= _MENTIONED_SHARE * time.core_seconds:
        named = [
            f"{_WORDS[use]} {q.seconds(seconds)}"
            for use, seconds in time.uses.items()
            if seconds >= _NAMED_SHARE * time.core_seconds
        ][:_NAMED_USES]
        by = " by findings" if has_findings else ""
        texts.append(
            f"Not explained{by}: {q.seconds(time.seconds)} of "
            f"{q.seconds(time.core_seconds)} of thread time "
            f"({q.share(time.seconds / time.core_seconds)}): {', '.join(named)}."
        )
    elif not has_findings and time.core_seconds:
        kept = q.share(time.kept_seconds / time.core_seconds)
        texts.append(f"{kept} of the thread time computed results that were kept.")
    if time.uses.get(REPEATED, 0.0) >= _NAMED_SHARE * max(time.core_seconds, 1e-9):
        keys = q.counted(time.repeated_keys, "key was", "keys were")
        texts.append(
            f"{keys} computed again in {q.counted(time.repeated_attempts, 'attempt')}."
        )
    if time.unfinished_attempts:
        many = q.counted(time.unfinished_attempts, "attempt had", "attempts had")
        which = "" if time.unfinished_attempts == 1 else "; the longest-running is "
        key = shortened(time.unfinished_key, _KEY_CHARACTERS)
        where = f"{key} on worker {time.unfinished_worker}"
        begun = f"assigned {q.seconds(time.unfinished_seconds)} before the end"
        texts.append(f"{many} not ended{which or ': '}{where}, {begun} of the recording.")
    if time.loaded_hosts:
        texts.append(_describe_load(time.loaded_hosts))
    return " ".join(texts)


def _describe_load(hosts: Sequence[_LoadedHost]) -> str:
    """Describe hosts without free cores by the one whose event loops were latest."""
    (host, reason, milliseconds, used_cores, cores), *others = hosts
    more = f" and {q.counted(len(others), 'other host')}" if others else ""
    of = f" of {cores:g}" if cores else ""
    used = [] if used_cores is None else [f"of this run used {used_cores:.1f}{of} cores"]
    if reason:
        begin = f"On host {visible(host)}{more}, {reason}"
        text = "; processes ".join([begin, *used])
    else:
        begin = (
            f"The cores of host {visible(host)}{more} were in use: event loops of all its "
            f"processes ran every {milliseconds:.0f} ms or less often (20 ms with free cores)"
        )
        text = ", while those ".join([begin, *used])
    return f"{text}. Durations can be shorter with free cores."
