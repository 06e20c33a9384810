"""Findings as text, and their changes from run to run."""

import pytest

from analyze.report.reading import plain
from roast_analyze.report.findings import Change, Cost, Finding, _entity, changes

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
    def costs(**seconds):
        return {(name, "x"): Cost(value) for name, value in seconds.items()}

    bases = [costs(a=1.0, b=5.0, e=0.0), costs(a=3.0, c=1.0)]

    assert changes(bases, costs(a=2.5, b=9.0, d=6.0, e=0.0)) == [
        Change("new", "d", "x", None, Cost(6.0)),
        Change("larger", "b", "x", Cost(5.0), Cost(9.0)),
        Change("gone", "c", "x", Cost(1.0), None),
        Change("smaller", "a", "x", Cost(3.0), Cost(2.5)),
        Change("same", "e", "x", Cost(0.0), Cost(0.0)),
    ]


def test_a_cost_of_which_a_part_is_known_is_a_lower_bound():
    """Chunks of one size show only the fixed time outside of the processor."""
    texts = {**TEXTS, "id": "chunks-too-small"}
    names = ("core_share", "run_seconds", "wall_share", "wall_seconds_min", "wall_seconds_max")
    known = {**dict.fromkeys(names), "core_seconds": 24.0, "core_share": 0.0}
    shown = [
        plain(Finding(**texts | {"confidence": confidence}, **known).cost)
        for confidence in ("high", "medium", "low")
    ]

    assert shown == ["24 core-seconds", *["at least 24 core-seconds"] * 2]
    assert str(Cost(24.0, is_bound=True)) == f"at least {Cost(24.0)}"


@pytest.mark.parametrize(
    ("entity", "shown"), [("7", "worker 7"), ("0, 12", "workers 0, 12"), ("a, 1", "a, 1")]
)
def test_numbers_of_workers_are_named(entity, shown):
    assert _entity(entity) == shown
