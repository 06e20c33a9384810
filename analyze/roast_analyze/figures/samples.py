"""Memory and CPU usage over time, of the cluster and of each worker.

A curve has at most :data:`POINT_LIMIT` points, one per bucket: the maximum of memory, so that
no peak is lost, and the mean of CPU usage. More than :data:`LINE_LIMIT` workers are drawn as
percentile bands instead of curves.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import NAME_LIMIT, label
from roast_analyze.figures.layout import curve

if TYPE_CHECKING:
    from collections.abc import Callable

    from plotly.graph_objects import Figure, Scatter

    from roast_analyze.figures.layout import TimeAxis

#: Maximum number of points of a curve.
POINT_LIMIT: Final = 240
#: Maximum number of workers that are drawn as curves.
LINE_LIMIT: Final = 30
#: A limit above this multiple of the peak is not drawn, because it would flatten the curves.
LIMIT_FACTOR: Final = 2.5
#: Maximum number of workers in the legend.
NAMED_LIMIT: Final = 8

_GIB: Final = 1024.0**3
_MIB: Final = 1024.0**2
#: Parts of the memory of the cluster, from below: column, legend, line color, area color.
_STACK: Final = (
    ("managed_bytes", "stored results", palette.RANKED[0], "rgba(0, 114, 178, 0.45)"),
    ("unmanaged_bytes", "other memory of the processes", palette.RANKED[4],
     "rgba(86, 180, 233, 0.28)"),
    ("spilled_bytes", "spilled, on disk", palette.RANKED[1], "rgba(230, 159, 0, 0.35)"),
)  # fmt: skip
_REFERENCE: Final = {"color": palette.REFERENCE, "dash": "dot", "width": 1.6}
#: The lower panel has its own legend, because its colors mean workers.
_LOWER: Final[dict[str, Any]] = {"yaxis": "y2", "legend": "legend2"}


def memory(
    cluster: pl.DataFrame, workers: pl.DataFrame, names: dict[str, str], axis: TimeAxis
) -> Figure:
    """Draw the memory of the cluster above that of its workers, on one time axis.

    The memory of the cluster is a stack: stored results, other memory of the processes, and
    on top spilled results, which are on disk and use no memory. The frames are the views
    ``cluster_samples`` and ``worker_samples``; ``names`` contains the name shown for each
    worker address, in the order of the legend.
    """
    used = pl.col("memory_bytes").fill_null(0)
    # The tick with the most memory in each bucket: its parts add up to the total.
    fullest = (
        cluster.sort(used, "t", descending=[True, False])
        .unique(axis.bucket(POINT_LIMIT), keep="first", maintain_order=True)
        .sort("t")
        .with_columns(pl.col("managed_bytes", "spilled_bytes").fill_null(0))
        .with_columns((used - pl.col("managed_bytes")).clip(0).alias("unmanaged_bytes"))
    )
    unit, size = ("GiB", _GIB) if _largest(fullest["memory_bytes"]) >= _GIB else ("MiB", _MIB)
    draw = partial(curve, axis, unit=unit, divisor=size)
    figure = _two_panels(axis, f"cluster ({unit})", f"worker ({unit})")
    for column, words, color, pale in _STACK:
        if column == "spilled_bytes" and _largest(fullest[column]) == 0:
            continue
        line = {"color": color, "width": 1}
        figure.add_trace(
            draw(fullest, column, words, line=line, stackgroup="memory", fill="tonexty",
                 fillcolor=pale)
        )  # fmt: skip
    if limit_fits(cluster):
        line = {**_REFERENCE, "shape": "hv"}
        figure.add_trace(draw(fullest, "memory_limit_bytes", "limit", line=line))
    figure.add_traces(_worker_curves(workers, "memory_bytes", names, axis, draw, largest=True))
    if workers.height and limit_fits(workers):
        limits = bucketed(workers, [], ["memory_limit_bytes"], axis, largest=True)
        figure.add_trace(
            draw(limits, "memory_limit_bytes", "limit per worker", line=_REFERENCE, **_LOWER)
        )
    return figure


def cpu(
    cluster: pl.DataFrame, workers: pl.DataFrame, names: dict[str, str], axis: TimeAxis
) -> Figure:
    """Draw the CPU usage of the cluster, in cores, above that of its workers, in percent.

    Parameters as of :func:`memory`.
    """
    figure = _two_panels(axis, "cluster (cores)", "worker (% of a core)")
    means = bucketed(cluster, [], ["cpu_percent", "nthreads"], axis, largest=False)
    busy = {"color": palette.RANKED[0], "width": 1.6}
    threads = {**_REFERENCE, "shape": "hv"}
    figure.add_trace(
        curve(axis, means, "cpu_percent", "CPU", unit="cores", divisor=100, line=busy,
              fill="tozeroy")
    )  # fmt: skip
    figure.add_trace(curve(axis, means, "nthreads", "threads", line=threads))
    draw = partial(curve, axis, unit="%")
    figure.add_traces(_worker_curves(workers, "cpu_percent", names, axis, draw, largest=False))
    return figure


def bucketed(
    samples: pl.DataFrame, by: list[str], columns: list[str], axis: TimeAxis, *, largest: bool
) -> pl.DataFrame:
    """Aggregate ``columns`` by buckets of equal length and ``by``: the maximum or the mean.

    Returns ``by``, ``t`` (first sample of the bucket) and ``columns``; sorted.
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
    figure = layout.panels(axis, 490, above, below, nticks=6)
    legend = figure.layout.legend.to_plotly_json()
    return figure.update_layout(legend2={**legend, "y": 0.42})


def _worker_curves(
    samples: pl.DataFrame,
    column: str,
    names: dict[str, str],
    axis: TimeAxis,
    draw: Callable[..., Scatter],
    *,
    largest: bool,
) -> list[Scatter]:
    """Draw a curve for each worker process, or percentile bands if there are many."""
    identified = samples.with_columns(pl.coalesce("server_id", "worker").alias("process"))
    each = bucketed(identified, ["process", "worker"], [column], axis, largest=largest)
    processes = each.partition_by("process", maintain_order=True)
    if len(processes) > LINE_LIMIT:
        # The median worker, the range of the middle 90 %, and the highest.
        value = pl.col(column)
        spread = (
            each.group_by(axis.bucket(POINT_LIMIT).alias("bucket"))
            .agg(
                pl.col("t").min(),
                value.quantile(0.05).alias("p05"),
                value.median().alias("median"),
                value.quantile(0.95).alias("p95"),
                value.max().alias("highest"),
            )
            .sort("t")
        )
        first, second = palette.RANKED[:2]
        edge = {"width": 0, "color": first}
        middle, top = {"width": 1.6, "color": first}, {"width": 1, "color": second}
        return [
            draw(spread, "p05", "5th percentile", line=edge, showlegend=False, **_LOWER),
            draw(spread, "p95", "middle 90 % of workers", line=edge, fill="tonexty", **_LOWER),
            draw(spread, "median", "median worker", line=middle, **_LOWER),
            draw(spread, "highest", "highest worker", line=top, **_LOWER),
        ]
    rank_of = {worker: rank for rank, worker in enumerate(names)}
    processes.sort(key=lambda process: rank_of.get(process["worker"][0], len(rank_of)))
    curves = []
    for rank, process in enumerate(processes):
        worker = process["worker"][0]
        words = label(names.get(worker) or worker, NAME_LIMIT)
        line = {"width": 1.3, "color": palette.RANKED[rank % len(palette.RANKED)]}
        is_named = len(processes) <= NAMED_LIMIT
        curves.append(draw(process, column, words, line=line, showlegend=is_named, **_LOWER))
    return curves
