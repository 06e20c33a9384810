import pytest

from roast_analyze import Trace
from roast_analyze.open.discover import group_by_trace
from roast_analyze.report.comparison.data import query


@pytest.fixture
def compare(write_trace):
    """Compare traces of 10 s of some records, given as ``name=records``."""

    def compare(**traces):
        paths = [
            write_trace(*records, name=f"{name}.jsonl", trace_id=name, stop_t=10.0)
            for name, records in traces.items()
        ]
        return query(group_by_trace(paths), lambda names: Trace(*names))

    return compare


@pytest.fixture
def fact():
    """Return a recorded fact."""

    def fact(section: str, name: str, value: object) -> dict:
        about = {"section": section, "name": name, "value": value}
        return {"kind": "environment", "t": 0.0, **about}

    return fact
