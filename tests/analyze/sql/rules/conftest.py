"""Fixtures that apply one rule to a small trace."""

from collections.abc import Iterable

import polars as pl
import pytest

from roast_analyze import Trace
from roast_analyze.computed.findings import applicable
from roast_analyze.computed.rules import COLUMNS, rules


@pytest.fixture
def apply_rules(write_traces):
    """Apply rules to several traces; for each rule, return columns of the rows of each trace.

    Opening and planning take most of the time of a test, and are the same for several traces.
    """

    def apply_rules(
        rule_ids: Iterable[str],
        *traces: Iterable[dict],
        columns="entity, core_seconds",
        stop_t=100.0,
    ) -> list[list[list[tuple]]]:
        by_id = {rule.id: rule for rule in rules()}
        traces = [[*records] for records in traces]
        kinds = [{record["kind"] for record in records} for records in traces]
        results = []
        with Trace(*write_traces(*traces, stop_t=stop_t)) as trace:
            for rule in map(by_id.get, rule_ids):
                # As in the table of findings: a rule whose condition does not hold has no rows.
                if not applicable(trace, [rule]):
                    results.append([[] for _ in traces])
                    continue
                found = trace.sql(rule.sql, rule.parameters).pl()
                assert set(COLUMNS) <= set(found.columns)
                texts = found.select("sentence", "change").cast(pl.String)
                assert texts.null_count().sum_horizontal().sum() == 0
                assert not texts.select(pl.all().str.strip_chars() == "").to_series().any()
                rows = [found.filter(pl.col("trace_id") == f"T{n}") for n in range(len(traces))]
                for of_trace, own in zip(kinds, rows, strict=True):
                    assert own.is_empty() or rule.records is None or rule.records in of_trace
                results.append([own.select(columns.split(", ")).rows() for own in rows])
        return results

    return apply_rules


@pytest.fixture
def apply_each(apply_rules):
    """Apply a rule to several traces at once; return columns of the rows of each."""

    def apply_each(rule_id: str, *traces: Iterable[dict], **options) -> list[list[tuple]]:
        [rows] = apply_rules([rule_id], *traces, **options)
        return rows

    return apply_each


@pytest.fixture
def apply(apply_each):
    """Apply a rule to a trace of some records; return columns of its rows."""

    def apply(rule_id: str, *records: dict, **options) -> list[tuple]:
        [rows] = apply_each(rule_id, records, **options)
        return rows

    return apply


@pytest.fixture
def process(chunk, run):
    """Return the records of chunks that workers process one after the other.

    Each chunk is a dictionary of seconds and, optionally, worker, file, events,
    dispatch_seconds and measurements. Chunks of a file have consecutive entries.
    """

    def process(*chunks: dict) -> list[dict]:
        free_t: dict[str, float] = {}
        entries: dict[str, int] = {}
        records = []
        for number, fields in enumerate(chunks, start=1):
            about = {
                "dataset": "DY",
                "file": "1.root",
                "worker": "w1",
                "events": 1000,
                **fields,
            }
            seconds, file = about.pop("seconds"), about.pop("file")
            assigned_t = free_t.get(about["worker"], 1.0)
            worker, events = about["worker"], about["events"]
            start_t = assigned_t + about.pop("dispatch_seconds", 0.0)
            first = entries.get(file, 0)
            free_t[worker], entries[file] = start_t + seconds, first + events
            records += [
                chunk(
                    f"chunk-{number}",
                    run_id=number,
                    filename=file,
                    treename="Events",
                    entry_start=first,
                    entry_stop=first + events,
                    start_t=start_t,
                    stop_t=start_t + seconds,
                    until="processed",
                    source="TTree",
                    **about,
                ),
                *run(
                    f"chunk-{number}",
                    assigned_t,
                    start_t + seconds,
                    worker,
                    phases=[("compute", start_t, start_t + seconds)],
                    run_id=number,
                ),
            ]
        return records

    return process
