"""One query over each of many traces: the functions :func:`each` and :func:`each_lazily`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb
import polars as pl

from roast_analyze.dask_cluster import call_each
from roast_analyze.errors import QueryError, TraceError, first_paragraph
from roast_analyze.open.readable import TraceFailure, readable_traces
from roast_analyze.open.remote import shown_name
from roast_analyze.open.session import Session

if TYPE_CHECKING:
    import dask.dataframe
    import pandas as pd

    from roast_analyze.dask_cluster import Client
    from roast_analyze.open.database import Listener

#: Memory limit of the database of a trace; it spills to disk beyond it.
MEMORY_LIMIT: Final = "512MiB"


def each(
    query: str,
    traces: Sequence[str | os.PathLike[str]],
    *,
    client: Client | None = None,
) -> pl.DataFrame:
    """Run a query over each of some traces.

    Parameters
    ----------
    query : str
        A query in DuckDB's SQL, such as ``SELECT … FROM task_runs``.
    traces : sequence of path-like
        Trace files, folders of segments, patterns for either, or URLs.
    client : distributed.Client, optional
        Client of a cluster that runs the queries. Its workers need access to the traces and
        roast-trace[analyze].

    Returns
    -------
    polars.DataFrame
        The rows of all traces, in their order, with the columns ``trace_id`` and ``path``
        of the trace, unless the query has columns of these names.

    Raises
    ------
    TraceError
        If a trace cannot be read.
    QueryError
        If the query is invalid.
    """
    frame, failures = run_each(query, traces, client=client)
    if failures:
        raise TraceError(f"{failures[0].path}: {failures[0].reason}")
    return frame


def each_lazily(
    query: str, traces: Sequence[str | os.PathLike[str]]
) -> dask.dataframe.DataFrame:
    """Return the rows of a query over each of some traces as a Dask DataFrame.

    The parameters are those of :func:`each`, for more rows than fit in memory: each trace is
    a partition, which is queried when Dask computes it. Needs ``dask[dataframe]``.

    Returns
    -------
    dask.dataframe.DataFrame
        The columns of the query, ``trace_id`` and ``path``, with types of Arrow.

    Raises
    ------
    TraceError
        If a trace cannot be found, or the first one cannot be read.
    QueryError
        If the query is invalid.
    """
    import dask.dataframe

    groups, failures = readable_traces(traces)
    if failures:
        raise TraceError(f"{failures[0].path}: {failures[0].reason}")
    if not groups:
        raise TraceError("no traces: name at least one")
    frame: dask.dataframe.DataFrame = dask.dataframe.from_map(
        partial(_partition, query=query),
        groups,
        meta=_partition(groups[0], f"FROM (\n{query}\n) LIMIT 0"),
    )
    return frame


def run_each(
    query: str,
    traces: Sequence[str | os.PathLike[str]],
    *,
    client: Client | None = None,
    listener: Listener = lambda _stage, _share: None,
) -> tuple[pl.DataFrame, list[TraceFailure]]:
    """Run a query as :func:`each`, and list the traces that cannot be read."""
    groups, failures = readable_traces(traces)
    frames = {}
    calls = call_each(partial(_run, query=query), groups, client)
    for finished, (paths, result) in enumerate(calls, start=1):
        # A wrong query is wrong for all traces.
        if isinstance(result, QueryError):
            raise result
        if isinstance(result, pl.DataFrame):
            frames[paths] = result
        else:
            reason = result if isinstance(result, str) else first_paragraph(result)
            failures.append(TraceFailure(shown_name(paths[0]), reason))
        listener("querying", finished / len(groups))
    ordered = [frames[paths] for paths in groups if paths in frames]
    try:
        # In a trace without values, a column can have another type than in the others, and a
        # query such as PIVOT can have other columns.
        frame = pl.concat(ordered, how="diagonal_relaxed") if ordered else pl.DataFrame()
    except pl.exceptions.PolarsError as error:
        raise QueryError(
            f"the columns of the traces do not fit together ({first_paragraph(error)}): cast "
            "them to one type"
        ) from None
    return frame, failures


def _partition(paths: tuple[Path, ...], query: str) -> pd.DataFrame:
    """Return the rows of a query over one trace."""
    frame = _run(paths, query)
    if isinstance(frame, str):
        raise TraceError(f"{shown_name(paths[0])}: {frame}")
    # Types of Arrow do not depend on whether values are missing.
    return frame.to_pandas(use_pyarrow_extension_array=True)


def _run(paths: tuple[Path, ...], query: str) -> pl.DataFrame | str:
    """Return the rows of a query over one trace, or the reason why there are none."""
    try:
        with Session(*paths, memory_limit=MEMORY_LIMIT) as trace:
            [(trace_id,)] = trace.rows("SELECT any_value(trace_id) FROM trace_info")
            frame: pl.DataFrame = trace.sql(query).pl()
    except QueryError:
        raise
    except (TraceError, duckdb.Error) as error:
        return first_paragraph(error)
    own = {"trace_id": trace_id, "path": shown_name(paths[0])}
    # Some views have such columns, of another meaning.
    return frame.with_columns(
        pl.lit(value).alias(name) for name, value in own.items() if name not in frame.columns
    )
