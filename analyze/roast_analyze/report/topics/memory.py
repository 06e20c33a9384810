"""Memory of the workers over time, and data transfers between workers.

Workers report with each task the transfers for its dependencies, with source and duration.
The number of bytes is known only if transfers were recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Figure, Heatmap

from roast_analyze.figures import layout, palette, samples
from roast_analyze.figures.labels import label, worker_name
from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_frame
from roast_analyze.report.section import Plot, Section
from roast_analyze.safe_text import named, shortened, visible

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Maximum number of rows of the table of pairs of workers.
PAIR_ROWS: Final = 20
#: Maximum number of rows of a map of workers; if there are more workers, neighbors share a row.
MAP_ROWS: Final = 40

_RECORDED: Final = (
    "SELECT source, destination, count(*) AS transfers, "
    "try_cast(sum(bytes) AS BIGINT) AS bytes, sum(stop_t - start_t) AS seconds FROM transfers "
    "WHERE source IS NOT NULL AND destination IS NOT NULL GROUP BY source, destination"
)
_REPORTED: Final = (
    "SELECT source, worker AS destination, count(*) AS transfers, "
    "NULL::BIGINT AS bytes, sum(seconds) AS seconds FROM task_phases "
    "WHERE action = 'transfer' AND source IS NOT NULL AND worker IS NOT NULL "
    "GROUP BY ALL"
)
_ORDER: Final = "bytes DESC NULLS LAST, seconds DESC, source, destination"

#: Heights: a row of the map, all rows at least, and everything around them.
_ROW_PX: Final = 16
_LEAST_PX: Final = 110
_AROUND_PX: Final = 130
#: Units: size and name, the largest first.
_BYTES: Final = ((1024.0**3, "GiB"), (1024.0**2, "MiB"), (1024.0, "KiB"), (1.0, "B"))
_SECONDS: Final = ((1.0, "s"), (1e-3, "ms"))
#: Maximum number of columns with names below them: plotly would rotate more names.
_NAMED_COLUMNS: Final = 8


_PAIRS: Final = columns("source destination transfers bytes seconds")
_SAMPLE_HINT: Final = (
    'roast_recorder.record(client, "trace.jsonl", sample_interval_seconds=0.2)'
)


@dataclass(frozen=True)
class Transfers:
    """Data transfers between workers."""

    #: Whether transfers were recorded, so that their bytes are known.
    recorded: bool
    count: int
    bytes: int
    #: Sum over all transfers, which can overlap.
    seconds: float
    #: source, destination, transfers, bytes, seconds; the largest first.
    pairs: Listing
    #: Rows of the map: see :func:`named_rows`.
    workers: pl.DataFrame
    #: Cells of the map: from_row, to_row, transfers, bytes, seconds.
    cells: pl.DataFrame
    #: Whether spills, or fine metrics of them, were recorded.
    has_spills: bool = False


def query(trace: Session, context: Context) -> Transfers:
    """Query the transfers of a run."""
    [(recorded, has_spills)] = trace.rows(
        "SELECT EXISTS (FROM transfers), EXISTS (FROM spills WHERE finish = 'disk') "
        "OR EXISTS (FROM fine_metrics WHERE activity = 'disk-write')"
    )
    text, view = (_RECORDED, "transfers") if recorded else (_REPORTED, "task_phases")
    pairs = trace.sql(f"{text} ORDER BY {_ORDER}").pl()
    addresses = context.workers.select("worker", "name").unique("worker", maintain_order=True)
    rows = addresses.with_columns(map_row().alias("row"))
    cells = (
        pairs.join(rows.select(source="worker", from_row="row"), on="source")
        .join(rows.select(destination="worker", to_row="row"), on="destination")
        .group_by("from_row", "to_row")
        .agg(pl.col("transfers", "bytes", "seconds").sum())
        .sort("from_row", "to_row")
    )
    return Transfers(
        recorded=recorded,
        count=int(pairs["transfers"].sum()),
        bytes=int(pairs["bytes"].sum()),
        seconds=float(pairs["seconds"].sum()),
        pairs=list_frame(view, text, _ORDER, PAIR_ROWS, pairs),
        workers=named_rows(rows),
        cells=cells,
        has_spills=has_spills,
    )


def map_row() -> pl.Expr:
    """Return the row of each worker of a list in a map with at most :data:`MAP_ROWS` rows."""
    return pl.int_range(pl.len()) * pl.min_horizontal(pl.len(), MAP_ROWS) // pl.len()


def named_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Name each ``row`` after its first worker, and count its ``workers``."""
    return rows.group_by("row", maintain_order=True).agg(
        pl.col("worker", "name").first(), pl.len().alias("workers")
    )


def section(transfers: Transfers, context: Context, prefixes: pl.DataFrame) -> Section:
    """Build the section; ``prefixes`` contains prefix and transfer_seconds."""
    section = Section("memory", "Memory and data transfers", "Memory")
    plots = []
    if context.cluster_samples.is_empty():
        interval = q.seconds(context.recording.sample_interval_seconds or 1.0)
        reason = (
            "No worker was sampled: there was none, the recording was shorter than the "
            f"sample interval ({interval}), or the settings excluded worker_sample."
        )
        if not transfers.count:
            return context.absent(section, f"{reason} To sample more often:", _SAMPLE_HINT)
        text = "The time range contains no sample." if context.time_range else reason
    else:
        cluster, workers = context.cluster_samples, context.worker_samples
        limit, spilled = (
            q.as_float(cluster[name].max()) for name in ("memory_limit_bytes", "spilled_bytes")
        )
        peak = q.byte_size(context.run.peak_memory_bytes)
        text = f"Peak memory of all workers was {peak}"
        text += f" of {q.byte_size(limit)}." if limit else "; no limit is set."
        # A nanny can kill its worker before the next sample.
        limited = pl.col("memory_limit_bytes") > 0
        shares = pl.concat(
            frame.filter(limited).select(pl.col(column) / pl.col("memory_limit_bytes"))[column]
            for frame, column in (
                (workers, "memory_bytes"),
                (context.workers, "peak_memory_bytes"),
            )
        )
        if (share := q.as_float(shares.max())) is not None:
            text += f" The fullest worker reached {q.share(share)} of its limit."
        if spilled:
            text += f" At most {q.byte_size(spilled)} were spilled to disk."
        elif spilled is not None and not transfers.has_spills:
            text += " Nothing was spilled to disk."
        if limit and not samples.limit_fits(cluster):
            # The limit of a worker is drawn separately.
            text += (
                " The limit of all workers is far above the curve and is not drawn."
                if samples.limit_fits(workers)
                else " The limits are far above the curves and are not drawn."
            )
        plots.append(
            Plot(
                samples.memory(cluster, workers, context.worker_names, context.axis),
                name="memory",
                title="Memory over time",
                description="Memory over time: of the cluster above, stacked as stored "
                "results, other memory and spilled results; of each worker below.",
                query="SELECT * FROM cluster_samples; SELECT * FROM worker_samples",
                command=context.view_command("worker_samples"),
            )
        )
    if transfers.count:
        rows, total = transfers.workers.height, int(transfers.workers["workers"].sum())
        note = (
            f"Each of the {q.count(rows)} rows stands for one or more of the {q.count(total)} "
            "addresses of workers, in order."
        )
        plots.append(
            Plot(
                heatmap(transfers),
                name="movement",
                title="Transfers between workers",
                description=f"A heatmap of {q.counted(rows, 'row')} by "
                f"{q.counted(rows, 'column')} of workers: the stronger the color, the more the "
                "worker of the row sent to that of the column.",
                note=note if total > rows else "",
                query=transfers.pairs.query,
                command="",
            )
        )
    tables = context.tables(
        ("pairs", "Transfers by pair of workers", transfers.pairs, _PAIRS, "the largest"),
        has_view=False,
    )
    return replace(
        section,
        sentences=(text, _transfers(transfers, prefixes)),
        plots=plots,
        tables=tables,
    )


def _transfers(transfers: Transfers, prefixes: pl.DataFrame) -> str:
    """Describe the transfers; ``prefixes`` contains prefix and transfer_seconds."""
    if not transfers.count:
        return "The workers reported no transfers between them."
    most = transfers.pairs.rows.row(0, named=True)
    source, destination = (
        shortened(visible(str(most[end])).rsplit("://", 1)[-1], 40)
        for end in ("source", "destination")
    )
    if transfers.recorded:
        return (
            f"The workers sent each other {q.byte_size(transfers.bytes)} in "
            f"{q.counted(transfers.count, 'transfer')}; the most, "
            f"{q.byte_size(most['bytes'])}, from {source} to {destination}."
        )
    text = (
        f"The workers reported {q.counted(transfers.count, 'transfer')} with a total duration "
        f"of {q.seconds(transfers.seconds)}; the most between two of them, "
        f"{q.seconds(most['seconds'])}, from {source} to {destination}."
    )
    waiting = prefixes.filter(pl.col("transfer_seconds") > 0).sort(
        "transfer_seconds", descending=True
    )
    if waiting.height:
        prefix, seconds = waiting.select("prefix", "transfer_seconds").row(0)
        name = named(prefix, "Tasks without a prefix")
        share = q.share(seconds / float(waiting["transfer_seconds"].sum()))
        text += f" {name} accounts for {share} of it."
    return f"{text} Bytes were not recorded."


def heatmap(transfers: Transfers) -> Figure:
    """Draw a heatmap: a row for each source and a column for each destination.

    Colors show bytes if these were recorded, else seconds.
    """
    names = [
        label(worker_name(row))
        + (f" and {row['workers'] - 1} more" if row["workers"] > 1 else "")
        for row in transfers.workers.iter_rows(named=True)
    ]
    column, units = ("bytes", _BYTES) if transfers.recorded else ("seconds", _SECONDS)
    most = max(transfers.cells[column].drop_nulls(), default=0)
    size, unit = next((each for each in units if most >= each[0]), units[-1])
    # More than three digits would only enlarge the page.
    values: list[list[float | None]] = [[None] * len(names) for _ in names]
    for source, destination, value in transfers.cells.select(
        "from_row", "to_row", column
    ).iter_rows():
        values[source][destination] = None if value is None else float(f"{value / size:.3g}")
    places = list(range(len(names)))
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": names, "showgrid": False}
    has_names = len(names) <= _NAMED_COLUMNS
    drawn = layout.empty_figure(
        _AROUND_PX + max(_ROW_PX * len(names), _LEAST_PX),
        xaxis=layout.axis(
            "destination" if has_names else "destination, in the same order",
            # Two or three columns across the whole page would look like bars.
            domain=[0, min(1, len(names) / _NAMED_COLUMNS)],
            showticklabels=has_names,
            **ticks,
        ),
        yaxis=layout.axis("source", autorange="reversed", **ticks),
    )
    if not has_names:
        # Without tick labels plotly writes the title onto the map.
        drawn.update_layout(xaxis_title_standoff=28, margin_b=48)
    return drawn.add_trace(
        Heatmap(
            z=values,
            x=places,
            y=places,
            zmin=0,
            zmax=most / size or 1,
            colorscale=[[0, "rgba(0, 114, 178, 0.08)"], [1, palette.RANKED[0]]],
            colorbar={
                "orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom",
                "len": 0.25, "thickness": 8, "outlinewidth": 0, "tickmode": "array",
                "tickvals": [0, most / size], "ticktext": ["0", f"{most / size:.3g} {unit}"],
            },
            hoverongaps=False,
            xgap=1,
            ygap=1,
            name="transferred",
            hovertemplate=f"%{{z:,.4~g}} {unit} from %{{y}} to %{{x}}<extra></extra>",
            meta=layout.columns(x="destination", y="source", z=f"{column}_in_{unit}"),
        )
    )  # fmt: skip
