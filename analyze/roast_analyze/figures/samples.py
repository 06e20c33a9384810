"""Memory and CPU usage over time, of the cluster and of each worker.

A curve has at most :data:`POINT_LIMIT` points, one per bucket: the maximum of memory, so that
no peak is lost, and the mean of CPU usage. More than :data:`LINE_LIMIT` workers are drawn as
percentile bands instead of curves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import NAME_LIMIT, label

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis

#: Most points of a curve.
POINT_LIMIT: Final = 240
#: Most workers that are drawn as curves.
LINE_LIMIT: Final = 30
#: A limit above this multiple of the peak is not drawn, because it would flatten the curves.
LIMIT_FACTOR: Final = 2.5
#: Most workers in the legend.
NAMED_LIMIT: Final = 8

_GIB: Final = 1024.0**3
_MIB: Final = 1024.0**2


@dataclass(frozen=True)
class Quantity:
    """A column of the samples and its aggregation.

    Parameters
    ----------
    column : str
        Column of ``cluster_samples`` and ``worker_samples``.
    largest : bool
        Whether a bucket shows its maximum; else its mean.
    """

    column: str
    largest: bool


MEMORY: Final = Quantity("memory_bytes", largest=True)
CPU: Final = Quantity("cpu_percent", largest=False)


def memory(
    cluster: pl.DataFrame, workers: pl.DataFrame, names: dict[str, str], axis: TimeAxis
) -> Figure:
    """Draw the memory of the cluster above that of its workers, on one time axis.

    The memory of the cluster is a stack: stored results, other memory of the processes, and
    on top spilled results, which are on disk and use no memory.

    Parameters
    ----------
    cluster : polars.DataFrame
        View ``cluster_samples``: t, memory_bytes, memory_limit_bytes, managed_bytes,
        spilled_bytes.
    workers : polars.DataFrame
        View ``worker_samples``: t, worker, server_id, memory_bytes, memory_limit_bytes.
    names : dict
        Worker address to the name shown, in the order of the legend.
    axis : TimeAxis
    """
    buckets = _fullest(cluster, axis)
    peak = _largest(buckets["memory_bytes"])
    unit, divisor = ("GiB", _GIB) if peak >= _GIB else ("MiB", _MIB)
    figure = _two_panels(axis, f"cluster ({unit})", f"worker ({unit})")
    for column, words, color, pale in _STACK:
        if column == "spilled_bytes" and _largest(buckets[column]) == 0:
            continue
        figure.add_trace(
            _line(
                buckets, column, words, axis, divisor, unit, "y2",
                line={"color": color, "width": 1}, fill="tonexty",
            ).update(stackgroup="memory", fillcolor=pale)
        )  # fmt: skip
    if limit_fits(cluster):
        line = {"color": palette.REFERENCE, "dash": "dot", "width": 1.6, "shape": "hv"}
        figure.add_trace(
            _line(buckets, "memory_limit_bytes", "limit", axis, divisor, unit, "y2", line=line)
        )
    figure.add_traces(_worker_lines(workers, MEMORY, names, axis, divisor, unit))
    if workers.height and limit_fits(workers):
        limits = bucketed(workers, [], ["memory_limit_bytes"], axis, largest=True)
        line = {"color": palette.REFERENCE, "dash": "dot", "width": 1.6}
        limit = _line(
            limits,
            "memory_limit_bytes",
            "limit per worker",
            axis,
            divisor,
            unit,
            "y",
            line=line,
        )
        figure.add_trace(limit)
    return figure


#: Parts of the memory of the cluster, from below: column, legend, line color, area color.
_STACK: Final = (
    ("managed_bytes", "stored results", palette.RANKED[0], "rgba(0, 114, 178, 0.45)"),
    (
        "unmanaged_bytes",
        "other memory of the processes",
        palette.RANKED[4],
        "rgba(86, 180, 233, 0.28)",
    ),
    ("spilled_bytes", "spilled, on disk", palette.RANKED[1], "rgba(230, 159, 0, 0.35)"),
)


def _fullest(cluster: pl.DataFrame, axis: TimeAxis) -> pl.DataFrame:
    """Return the tick with the most memory of each bucket, whose parts add up to the total."""
    memory = pl.col("memory_bytes").fill_null(0)
    return (
        cluster.sort(memory, "t", descending=[True, False])
        .unique(axis.bucket(POINT_LIMIT), keep="first", maintain_order=True)
        .sort("t")
        .with_columns(pl.col("managed_bytes", "spilled_bytes").fill_null(0))
        .with_columns((memory - pl.col("managed_bytes")).clip(0).alias("unmanaged_bytes"))
    )


def cpu(
    cluster: pl.DataFrame, workers: pl.DataFrame, names: dict[str, str], axis: TimeAxis
) -> Figure:
    """Draw the CPU usage of the cluster, in cores, above that of its workers, in percent.

    Parameters
    ----------
    cluster : polars.DataFrame
        View ``cluster_samples``: t, cpu_percent, nthreads.
    workers : polars.DataFrame
        View ``worker_samples``: t, worker, server_id, cpu_percent; 100 is one core.
    names : dict
        Worker address to the name shown, in the order of the legend.
    axis : TimeAxis
    """
    figure = _two_panels(axis, "cluster (cores)", "worker (% of a core)")
    buckets = bucketed(cluster, [], ["cpu_percent", "nthreads"], axis, largest=False)
    busy = {"color": palette.RANKED[0], "width": 1.6}
    reference = {"color": palette.REFERENCE, "dash": "dot", "width": 1.6, "shape": "hv"}
    figure.add_trace(
        _line(
            buckets, "cpu_percent", "CPU", axis, 100, "cores", "y2", line=busy, fill="tozeroy"
        )
    )
    figure.add_trace(
        _line(buckets, "nthreads", "threads", axis, 1, "threads", "y2", line=reference)
    )
    figure.add_traces(_worker_lines(workers, CPU, names, axis, 1, "%"))
    return figure


def bucketed(
    samples: pl.DataFrame, by: list[str], columns: list[str], axis: TimeAxis, *, largest: bool
) -> pl.DataFrame:
    """Aggregate samples by buckets of equal length.

    Parameters
    ----------
    samples : polars.DataFrame
        ``t``, the columns of ``by`` and ``columns``.
    by : list of str
        Columns to group by.
    columns : list of str
        Columns to aggregate.
    axis : TimeAxis
    largest : bool
        Whether to return the maximum of a bucket; else the mean.

    Returns
    -------
    polars.DataFrame
        ``by``, ``t`` (first sample of the bucket), ``columns``; sorted.
    """
    value = pl.col(columns).max() if largest else pl.col(columns).mean()
    bucket = axis.bucket(POINT_LIMIT).alias("bucket")
    grouped = samples.group_by([*by, bucket]).agg(pl.col("t").min(), value)
    return grouped.sort(*by, "t").drop("bucket")


def limit_fits(samples: pl.DataFrame) -> bool:
    """Return whether the memory limit is low enough to be drawn with the peak."""
    limit = _largest(samples["memory_limit_bytes"])
    return 0 < limit <= LIMIT_FACTOR * _largest(samples["memory_bytes"])


def _largest(values: pl.Series) -> float:
    value = values.max()
    return float(value) if isinstance(value, int | float) else 0.0


def _two_panels(axis: TimeAxis, above: str, below: str) -> Figure:
    figure = layout.empty_figure(
        490,
        xaxis=layout.axis(axis.title, range=axis.range, anchor="y"),
        yaxis=layout.axis(below, domain=[0, 0.42], rangemode="tozero", nticks=6),
        yaxis2=layout.axis(above, domain=[0.58, 1], rangemode="tozero", nticks=6, anchor="x"),
    )
    # The lower panel needs its own legend, because its colors mean workers.
    legend = figure.layout.legend.to_plotly_json()
    return figure.update_layout(legend2={**legend, "y": 0.42})


def _worker_lines(
    samples: pl.DataFrame,
    what: Quantity,
    names: dict[str, str],
    axis: TimeAxis,
    divisor: float,
    unit: str,
) -> list[Scatter]:
    """Draw a line for each worker process, or bands if there are many."""
    identity = samples.with_columns(pl.coalesce("server_id", "worker").alias("process"))
    if identity["process"].n_unique() > LINE_LIMIT:
        return _bands(identity, what, axis, divisor, unit)
    lines = bucketed(identity, ["process", "worker"], [what.column], axis, largest=what.largest)
    by_process = lines.partition_by("process", maintain_order=True)
    rank_of = {worker: rank for rank, worker in enumerate(names)}
    by_process.sort(key=lambda line: rank_of.get(line["worker"][0], len(rank_of)))
    traces = []
    for rank, some in enumerate(by_process):
        worker = some["worker"][0]
        words = label(names.get(worker) or worker, NAME_LIMIT)
        line = {"width": 1.3, "color": palette.RANKED[rank % len(palette.RANKED)]}
        trace = _line(some, what.column, words, axis, divisor, unit, "y", line=line)
        traces.append(trace.update(showlegend=len(by_process) <= NAMED_LIMIT))
    return traces


def _bands(
    samples: pl.DataFrame, what: Quantity, axis: TimeAxis, divisor: float, unit: str
) -> list[Scatter]:
    """Draw the median worker, the range of the middle 90 %, and the highest."""
    each = bucketed(samples, ["process"], [what.column], axis, largest=what.largest)
    column = pl.col(what.column)
    spread = (
        each.group_by(axis.bucket(POINT_LIMIT).alias("bucket"))
        .agg(
            pl.col("t").min(),
            column.quantile(0.05).alias("p05"),
            column.median().alias("median"),
            column.quantile(0.95).alias("p95"),
            column.max().alias("highest"),
        )
        .sort("t")
    )
    thin = {"width": 0, "color": palette.RANKED[0]}
    return [
        _line(spread, "p05", "5th percentile", axis, divisor, unit, "y", line=thin).update(
            showlegend=False
        ),
        _line(
            spread, "p95", "middle 90 % of workers", axis, divisor, unit, "y",
            line=thin, fill="tonexty",
        ),
        _line(
            spread, "median", "median worker", axis, divisor, unit, "y",
            line={"width": 1.6, "color": palette.RANKED[0]},
        ),
        _line(
            spread, "highest", "highest worker", axis, divisor, unit, "y",
            line={"width": 1, "color": palette.RANKED[1]},
        ),
    ]  # fmt: skip


def _line(
    frame: pl.DataFrame,
    column: str,
    words: str,
    axis: TimeAxis,
    divisor: float,
    unit: str,
    yaxis: str,
    *,
    line: dict[str, Any],
    fill: str = "none",
) -> Scatter:
    values = (frame[column].cast(pl.Float64) / divisor).round(3)
    return Scatter(
        mode="lines",
        x=frame.select(axis.place("t").round(3)).to_series().to_list(),
        y=values.to_list(),
        yaxis=yaxis,
        legend="legend" if yaxis == "y2" else "legend2",
        name=words,
        line=line,
        fill=fill,
        fillcolor=palette.AREA,
        hovertemplate=f"%{{y:,.4~g}} {unit} {words}<extra></extra>",
        meta=layout.columns(x=axis.column, y=f"{column}_in_{unit}"),
    )
