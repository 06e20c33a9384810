"""Odd recordings are what plain Python makes of them, too: view by view, row by row."""

import json

import pytest
from gold.oddities import DAMAGED, MET, counted, odd
from gold.recording import Recording
from gold.test_views import GOLD, SAMPLES, differences_of

from roast_analyze import Trace

[SAMPLE] = [path for path in SAMPLES if path.name.startswith("coffea_failures.")]


@pytest.fixture(scope="module")
def lines():
    """A sample, but for most of its profiles: they are large, and nothing depends on them."""
    whole = Recording.read(SAMPLE)
    left_out = [id(line) for line in whole.of("profile")[2:]]
    return counted([line for line in whole.lines if id(line) not in left_out])


@pytest.mark.parametrize("oddity", [*MET, *DAMAGED], ids=lambda oddity: oddity.__name__)
def test_odd_trace(tmp_path, lines, oddity):
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in odd(oddity, lines)))
    recording = Recording.read(path)

    with Trace(path) as opened:
        wrong = {view: differences_of(view, opened, recording) for view in GOLD}

    assert {view: found[:5] for view, found in wrong.items() if found} == {}
