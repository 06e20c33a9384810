"""Several traces in one database, for samples of other programs."""

# ruff: noqa: F401, F811 - fixtures are imported and requested by name

import pytest

from analyze.sql.test_several_traces import (
    SAMPLES,
    copy,
    database,
    test_views_are_the_union_of_single_traces,
)

SETS = {
    "three samples": lambda _: [
        SAMPLES / f"{name}.jsonl.zst" for name in ("shuffle_reduce", "coffea", "image_pipeline")
    ],
    "chunks and their copy": lambda copy: [
        copy(SAMPLES / "coffea_failures.jsonl.zst", name) for name in ("b", "a")
    ],
}


@pytest.fixture(scope="module", params=SETS)
def databases(request, copy, database):
    """Return the traces together, and each of them alone."""
    traces = SETS[request.param](copy)
    return database(*traces), [database(trace) for trace in traces]
