"""Findings as text, and their changes from run to run."""

import pytest

from analyze.report.reading import plain
from roast_analyze.report.findings import Change, Finding, changes

TEXTS = dict.fromkeys(
    ("id", "title", "severity", "confidence", "entity", "sentence", "change", "evidence",
     "documentation"), "",
)  # fmt: skip


@pytest.mark.parametrize(
    ("core", "wall", "texts"),
    [
        (
            (600.0, 0.25), (0.3, 20.0, 40.0),
            ("10 core-minutes (25 % of the core time)", "about 30 s of 1 min 40 s (30 %)",
             "between 20 s and 40 s"),
        ),
        (
            (90.0, None), (0.3, 30.0, 30.0),
            ("90 core-seconds", "about 30 s of 1 min 40 s (30 %)", ""),
        ),
        ((None, None), (0.0, None, None), ("", "no wall time", "")),
        ((0.0, 0.0), (None, None, 0.0), ("", "", "")),
    ],
)  # fmt: skip
def test_cost_and_saving(core, wall, texts):
    names = ("core_seconds", "core_share", "wall_share", "wall_seconds_min", "wall_seconds_max")
    numbers = dict(zip(names, (*core, *wall), strict=True))
    finding = Finding(**TEXTS, run_seconds=100.0, **numbers)

    assert (plain(finding.cost), plain(finding.saving), plain(finding.saving_range)) == texts


@pytest.mark.parametrize(
    ("core_seconds", "most", "exceeds"),
    [(2.4, 9.9, True), (20.0, 9.9, False), (None, 9.9, False), (2.4, None, False)],
)
def test_a_saving_above_the_cost_is_explained(core_seconds, most, exceeds):
    unknown = dict.fromkeys(("core_share", "run_seconds", "wall_share", "wall_seconds_min"))
    finding = Finding(**TEXTS, **unknown, core_seconds=core_seconds, wall_seconds_max=most)
    note = "It can exceed the cost, which excludes waits that follow from the cause."
    assert finding.saving_note == note * exceeds


def test_changes_from_the_base_in_which_a_finding_cost_most():
    bases = [{("a", ""): 1.0, ("b", "x"): 5.0, ("e", ""): 0.0}]
    bases += [{("a", ""): 3.0, ("c", ""): 1.0}]
    after = {("a", ""): 2.5, ("b", "x"): 9.0, ("d", ""): 6.0, ("e", ""): 0.0}

    assert changes(bases, after) == [
        Change("new", "d", "", None, 6.0),
        Change("larger", "b", "x", 5.0, 9.0),
        Change("gone", "c", "", 1.0, None),
        Change("smaller", "a", "", 3.0, 2.5),
        Change("same", "e", "", 0.0, 0.0),
    ]
