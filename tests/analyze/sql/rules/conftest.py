"""Fixtures that apply one rule to a small trace."""

import pytest

from roast_analyze.computed.rules import COLUMNS, rules


@pytest.fixture
def apply(open_trace):
    """Apply a rule to a trace of some records; return columns of its rows."""

    def apply(rule_id: str, *records: dict, columns="entity, core_seconds", stop_t=100.0):
        [rule] = [rule for rule in rules() if rule.id == rule_id]
        found = open_trace(*records, stop_t=stop_t).sql(rule.sql, rule.parameters).pl()
        assert set(COLUMNS) <= set(found.columns)
        assert found["sentence"].null_count() == found["change"].null_count() == 0
        if rule.records is not None and not found.is_empty():
            assert rule.records in {record["kind"] for record in records}
        return found.select(columns.split(", ")).rows()

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
