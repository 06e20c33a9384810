"""One query on each of many traces."""

import dask
import pytest

from roast_analyze import each, each_lazily
from roast_analyze.batch_query import run_each
from roast_analyze.errors import QueryError, TraceError


@pytest.fixture
def runs(write_trace, task):
    """Write two traces with one and two tasks."""
    return [
        write_trace(*(task(f"x-{i}") for i in range(n)), trace_id=f"T{n}", name=f"{n}.jsonl")
        for n in (1, 2)
    ]


@pytest.mark.exhaustive
def test_rows_of_all_traces_in_their_order(runs, tmp_path):
    frame = each("SELECT count(*) AS n FROM tasks", runs)

    assert frame.columns == ["n", "trace_id", "path"]
    assert frame.rows() == [(1, "T1", str(runs[0])), (2, "T2", str(runs[1]))]
    # A column can be NULL in all rows of some traces.
    frame = each("SELECT CASE WHEN count(*) > 1 THEN 0.5 END AS x FROM tasks", runs)
    assert frame["x"].to_list() == [None, 0.5]
    # Columns can depend on the trace.
    pivot = "(PIVOT tasks ON key USING count(*) GROUP BY prefix)"
    assert each(f"FROM {pivot}", runs).select("x-0", "x-1").rows() == [(1, None), (1, 1)]
    with pytest.raises(QueryError, match="columns of the traces do not fit together"):
        each(f"""SELECT *, [1] AS "x-1" FROM {pivot}""", runs)
    # The query may have a column of such a name.
    assert each("SELECT 'mine' AS path", runs)["path"].to_list() == ["mine", "mine"]
    with pytest.raises(QueryError, match="nothing"):
        each("FROM nothing", runs)
    with pytest.raises(TraceError, match=r"none\.jsonl"):
        each("FROM tasks", [*runs, tmp_path / "none.jsonl"])


def test_a_query_that_fails_for_one_trace_returns_the_rows_of_the_others(runs):
    query = "SELECT CASE count(*) WHEN 1 THEN 'x'::INT ELSE 5 END AS n FROM tasks"

    frame, [failure] = run_each(query, runs)

    assert frame["n"].to_list() == [5]
    assert failure.path == str(runs[0])
    assert "Could not convert string 'x'" in failure.reason


@pytest.mark.exhaustive
def test_a_dask_dataframe_has_a_partition_for_each_trace(runs):
    frame = each_lazily(
        "SELECT key, CASE WHEN key = 'x-1' THEN 0.5::DOUBLE END AS x FROM tasks", runs
    )

    assert frame.npartitions == 2
    assert frame.columns.tolist() == ["key", "x", "trace_id", "path"]
    # An earlier test may have left a closed cluster as the default scheduler of Dask.
    with dask.config.set(scheduler="sync"):
        assert frame.compute().groupby("trace_id").size().to_dict() == {"T1": 1, "T2": 2}
        assert frame["x"].sum().compute() == 0.5
        assert frame.dtypes.equals(frame.compute().dtypes)
    with pytest.raises(QueryError, match="nothing"):
        each_lazily("FROM nothing", runs)
    with pytest.raises(TraceError, match="no traces"):
        each_lazily("FROM tasks", [])
