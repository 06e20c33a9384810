"""One rule at a time, on small traces."""

import pytest

from roast_analyze.computed.rules import COLUMNS, rules


@pytest.fixture
def apply(open_trace):
    """Apply a rule to a trace of some records; return columns of its rows."""

    def apply(rule_id: str, *records: dict, columns="entity, core_seconds", stop_t=100.0):
        [rule] = [rule for rule in rules() if rule.id == rule_id]
        found = open_trace(*records, stop_t=stop_t).sql(rule.sql, rule.parameters).pl()
        assert set(COLUMNS) <= set(found.columns)
        return found.select(columns.split(", ")).rows()

    return apply
