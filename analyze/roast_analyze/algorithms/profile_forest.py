"""Samples of profile records by kind of work.

The trees of all records are classified node by node, each node once, and the samples of a
profiling cycle are summed by what their nodes are for. Stacks are never written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.algorithms.work_kinds import Function, classify

if TYPE_CHECKING:
    from roast_analyze.algorithms.work_kinds import Kinds, State

#: Columns of profiling cycles; instants are those of the records.
SLICES: Final = pl.Schema(
    {
        "slice": pl.Int64(),
        "process": pl.Int64(),
        "prefix": pl.String(),
        "start": pl.Float64(),
        "stop": pl.Float64(),
        "interval": pl.Float64(),
        "has_calls": pl.Boolean(),  # compiled functions are named
        "is_timed": pl.Boolean(),  # seconds are those between samples
    }
)

#: Columns of the samples of each cycle.
SAMPLES: Final = pl.Schema(
    {
        "slice": pl.Int64(),
        "kind": pl.String(),
        "detail": pl.String(),
        "samples": pl.Float64(),
        "seconds": pl.Float64(),
    }
)


def sampled_kinds(
    kinds: Kinds, profiles: pl.DataFrame, first_slice: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the profiling cycles of records, and their samples by kind and detail.

    Parameters
    ----------
    kinds : Kinds
    profiles : polars.DataFrame
        process, prefix, interval, and the tree of valid records.
    first_slice : int
        Number of the first cycle.
    """
    trees = profiles.with_row_index("record").unnest("tree")
    nodes, states = _classified(kinds, trees)
    cycles = (
        trees.select("record", "process", "prefix", "interval", "slices")
        .explode("slices")
        .filter(pl.col("slices").is_not_null())
        .unnest("slices")
        .filter(pl.col("start_t").is_finite() & pl.col("stop_t").is_finite())
        .with_row_index("slice", offset=first_slice)
    )
    if cycles.is_empty():
        return pl.DataFrame(schema=SLICES), pl.DataFrame(schema=SAMPLES)
    is_timed = _are_times("innermost_seconds", "nodes") & _are_times(
        "call_seconds", "call_nodes"
    )
    cycles = cycles.with_columns(is_timed=is_timed.fill_null(False))
    innermost = pl.concat(
        [
            cycles.filter(pl.col("innermost").is_not_null())
            .select(
                "slice", "record", node="nodes", samples="innermost",
                seconds=pl.when("is_timed").then("innermost_seconds").otherwise(_untimed("innermost")),
            )
            .explode("node", "samples", "seconds")
            .filter(pl.col("samples") > 0)
            .select("slice", "record", pl.col("node", "samples").cast(pl.Int64), "seconds"),
            _innermost_by_counts(cycles.filter(pl.col("innermost").is_null()), nodes),
        ]
    )  # fmt: skip
    called = _calls(trees, cycles, innermost)
    # What ended in calls did not end in the node itself.
    ended = (
        innermost.join(
            called.group_by("slice", "node").agg(
                pl.col("samples").sum().alias("called"),
                pl.col("seconds").sum().alias("called_seconds"),
            ),
            on=["slice", "node"],
            how="left",
        )
        .with_columns(
            samples=pl.col("samples") - pl.col("called").fill_null(0),
            seconds=(pl.col("seconds") - pl.col("called_seconds").fill_null(0.0)).clip(0),
        )
        .drop("called", "called_seconds")
    )
    located = pl.concat([ended.with_columns(call=pl.lit(None, pl.String)), called]).join(
        nodes.select("record", "node", "state"), on=["record", "node"]
    )
    # Few pairs of a state and a call differ.
    pairs = located.select("state", "call").unique()
    found = [
        states[state] if call is None else kinds.call(states[state], call)
        for state, call in pairs.iter_rows()
    ]
    pairs = pairs.with_columns(
        kind=pl.Series([state.kind for state in found], dtype=pl.String),
        detail=pl.Series([state.detail for state in found], dtype=pl.String),
    )
    samples = (
        located.join(pairs, on=["state", "call"], nulls_equal=True)
        .group_by("slice", "kind", "detail")
        .agg(pl.col("samples", "seconds").sum())
        .filter(pl.col("samples") > 0)
        .sort("slice", "kind", "detail")
    )
    # A stall also delays the end of a cycle, whose samples have the time since the last one.
    spent = samples.group_by("slice").agg(pl.col("seconds").sum().alias("spent"))
    before = pl.col("stop_t").shift(1).over("process", order_by="stop_t")
    slices = (
        cycles.join(spent, on="slice", how="left", maintain_order="left")
        .with_columns(before=pl.when(before < pl.col("stop_t")).then(before))
        .with_columns(
            begin=pl.when("is_timed")
            .then(pl.max_horizontal("before", pl.col("stop_t") - pl.col("spent")))
            .otherwise("start_t")
        )
        .select(
            "slice",
            "process",
            "prefix",
            start=pl.min_horizontal("begin", "start_t", "stop_t"),
            stop="stop_t",
            interval="interval",
            has_calls=pl.col("call_nodes").is_not_null(),
            is_timed="is_timed",
        )
    )
    return (
        slices.select(pl.col(name).cast(kind) for name, kind in SLICES.items()),
        samples.select(pl.col(name).cast(kind) for name, kind in SAMPLES.items()),
    )


def _classified(kinds: Kinds, trees: pl.DataFrame) -> tuple[pl.DataFrame, list[State]]:
    """Return record, node, parent and state of each node, and the states."""
    frames = (
        trees.select("record", "frames")
        .explode("frames")
        .filter(pl.col("frames").is_not_null())
        .unnest("frames")
        .with_columns(frame=pl.int_range(pl.len()).over("record"))
    )
    columns = ["name", "filename", "line_number"]
    known = frames.select(columns).unique(maintain_order=True)
    functions = [
        Function(name or "?", file or "?", line) for name, file, line in known.iter_rows()
    ]
    numbered = frames.join(
        known.with_row_index("function"), on=columns, how="left", nulls_equal=True
    ).select("record", pl.col("frame").cast(pl.Int64), pl.col("function").cast(pl.Int64))
    nodes = (
        trees.select("record", parent="parents", frame="node_frames")
        .explode("parent", "frame")
        .with_columns(pl.col("parent", "frame").cast(pl.Int64))
        .with_columns(node=pl.int_range(pl.len()).over("record"))
        .with_row_index("place")
        .join(numbered, on=["record", "frame"], how="left", maintain_order="left")
        .with_columns(
            above=(
                pl.col("place").cast(pl.Int64) - pl.col("node") + pl.col("parent")
            ).fill_null(-1)
        )
    )
    found, states = classify(
        kinds, functions, nodes["above"].to_list(), nodes["function"].fill_null(-1).to_list()
    )
    return nodes.select(
        "record", "node", "parent", state=pl.Series(found, dtype=pl.Int64)
    ), states


def _innermost_by_counts(cycles: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """Return the samples by slice, record and node of cycles without innermost functions.

    Dask does not count the innermost function, so the excess of a node over its children ended
    in one of them, as in the view ``_counted_stacks``. What is undecided stays at the node.
    """
    counts = (
        cycles.select("slice", "record", "interval", node="nodes", count="counts")
        .explode("node", "count")
        .filter(pl.col("node").is_not_null())
        .with_columns(pl.col("node", "count").cast(pl.Int64))
        .join(nodes, on=["record", "node"], how="left")
    )
    count = pl.col("count")
    callees = counts.group_by("slice", node=pl.col("parent")).agg(
        pl.len().cast(pl.Int64).alias("callees"),
        (count == 0).sum().cast(pl.Int64).alias("uncounted"),
        count.sum().alias("counted"),
    )
    callers = (
        counts.join(callees, on=["slice", "node"], how="left")
        .with_columns(pl.col("callees", "uncounted", "counted").fill_null(0))
        .with_columns(excess=(count - pl.col("counted")).clip(0))
        .with_columns(
            certain=pl.when(pl.col("uncounted") <= pl.col("excess"))
            .then("uncounted")
            .otherwise(0)
        )
    )
    above = callers.select(
        "slice",
        parent="node",
        all_callees="callees",
        all_excess="excess",
        all_certain="certain",
    )
    own = pl.when(pl.col("callees") == 0).then("excess").otherwise(0)
    undecided = (
        pl.when(pl.col("callees") > 1).then(pl.col("excess") - pl.col("certain")).otherwise(0)
    )
    from_caller = (
        pl.when(pl.col("all_callees") == 1)
        .then("all_excess")
        .when((pl.col("all_callees") > 1) & (count == 0))
        .then(pl.min_horizontal("all_certain", 1))
        .otherwise(0)
        .fill_null(0)
    )
    return (
        callers.join(above, on=["slice", "parent"], how="left")
        .with_columns(samples=own + undecided + from_caller)
        .filter(pl.col("samples") > 0)
        .select(
            "slice", "record", "node", pl.col("samples").cast(pl.Int64),
            seconds=pl.col("samples") * pl.col("interval"),
        )
    )  # fmt: skip


def _untimed(samples: str) -> pl.Expr:
    """Return the time of samples of one interval each."""
    return pl.col(samples).cast(pl.List(pl.Float64)) * pl.col("interval")


def _are_times(times: str, of: str) -> pl.Expr:
    """Return whether there is a finite time for each element of another list."""
    values = pl.col(times).list
    return (values.len() == pl.col(of).list.len()) & values.eval(
        pl.element().is_finite() & (pl.element() >= 0)
    ).list.all()


def _calls(trees: pl.DataFrame, cycles: pl.DataFrame, innermost: pl.DataFrame) -> pl.DataFrame:
    """Return slice, record, node, samples, seconds and call of the compiled functions.

    Calls that a damaged record cannot have are left out: a node cannot have more of them than
    samples that ended there.
    """
    names = (
        trees.select("record", call="calls")
        .explode("call")
        .with_columns(number=pl.int_range(pl.len()).over("record"))
        .filter(pl.col("call").is_not_null())
    )
    lengths = [pl.col(f"call_{part}").list.len() for part in ("nodes", "names", "samples")]
    called = (
        cycles.filter((lengths[0] == lengths[1]) & (lengths[0] == lengths[2]))
        .select(
            "slice",
            "record",
            node="call_nodes",
            number="call_names",
            called="call_samples",
            spent=pl.when("is_timed").then("call_seconds").otherwise(_untimed("call_samples")),
        )
        .explode("node", "number", "called", "spent")
        .with_columns(pl.col("node", "number", "called").cast(pl.Int64))
        .filter(pl.col("called") > 0)
        .join(names.with_columns(pl.col("number").cast(pl.Int64)), on=["record", "number"])
        .join(innermost, on=["slice", "record", "node"])
    )
    fits = pl.col("called").sum().over("slice", "node") <= pl.col("samples")
    return called.filter(fits).select(
        "slice", "record", "node",
        samples="called",
        seconds="spent",
        call="call",
    )  # fmt: skip
