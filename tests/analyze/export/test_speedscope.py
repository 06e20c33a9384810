"""Profiles for speedscope are valid in its schema, with the samples of the trace."""

import json
from pathlib import Path

import jsonschema
import pytest

SCHEMA = json.loads((Path(__file__).parent / "speedscope/file-format-schema.json").read_text())


@pytest.fixture
def speedscope(export):
    """Return the file of a trace, or of a part of it, after validating it."""

    def speedscope(trace, **part) -> dict:
        file = json.loads(export(trace, "speedscope", **part))
        jsonschema.validate(file, SCHEMA)
        for profile in file["profiles"]:
            assert len(profile["samples"]) == len(profile["weights"])
            assert sum(profile["weights"]) == pytest.approx(profile["endValue"])
            used = [frame for sample in profile["samples"] for frame in sample]
            assert all(0 <= frame < len(file["shared"]["frames"]) for frame in used)
        return file

    return speedscope


def functions(file: dict) -> list[str]:
    return [frame["name"] for frame in file["shared"]["frames"]]


def stacks(file: dict, number: int = 0) -> list[tuple[list[str], float]]:
    """Return the names of functions and the weight of each sample."""
    profile, names = file["profiles"][number], functions(file)
    samples = ([names[frame] for frame in sample] for sample in profile["samples"])
    return list(zip(samples, map(pytest.approx, profile["weights"]), strict=True))


def test_each_worker_has_a_profile_of_samples_ordered_by_time(
    speedscope, open_trace, worker, profile
):
    trace = open_trace(
        worker("w1", name="first"),
        profile("w1", functions=("main", "f"), counts=(3, 5), start_t=5.0),
        profile("w1", "b", functions=("early",), counts=(1,)),
        profile("w2", functions=("main", "g"), counts=(2,)),
        profile(None, None, functions=("loop",), counts=(7,)),
    )

    file = speedscope(trace)

    assert [p["name"] for p in file["profiles"]] == ["first w1", "w2", "scheduler"]
    assert {p["unit"] for p in file["profiles"]} == {"seconds"}
    assert stacks(file, 0) == [(["early"], 0.01), (["main", "f"], 0.03), (["main", "f"], 0.05)]
    assert stacks(file, 1) == [(["main", "g"], 0.02)]
    assert {"name": "main", "file": "/lib/code.py", "line": 10} in file["shared"]["frames"]


def test_ambiguous_samples_count_for_the_caller(speedscope, open_trace, profile):
    tree = {
        "frames": [{"name": "m", "filename": "f.py", "line_number": 1}, {"name": "f"}, {}],
        "parents": [None, 0, 1, 1],
        "node_frames": [None, 0, 1, 2],
        "line_numbers": [None, 1, 1, 1],
        "slices": [{"start_t": 1, "stop_t": 2, "nodes": [0, 1, 2, 3], "counts": [9, 9, 0, 0]}],
    }

    file = speedscope(open_trace(profile(tree=tree)))

    found = {tuple(names): weight for names, weight in stacks(file)}
    assert found == {("m", "f"): 0.01, ("m", "?"): 0.01, ("m",): 0.07}


def test_functions_of_the_recorder_and_unknown_intervals(speedscope, open_trace, profile):
    wrappers = {"recorder": ("timed", "measured")}
    trace = open_trace(
        profile(functions=("main", "timed", "read"), **wrappers),
        profile(functions=("main", "timed", "measured"), start_t=2.0, **wrappers),
    )
    expected = [(["main", "read"], 0.03), (["main", "(roast recorder)"], 0.03)]
    assert stacks(speedscope(trace)) == expected

    # Without an interval samples are counted.
    [found] = speedscope(open_trace(profile(interval_seconds=None, counts=(4,))))["profiles"]
    assert (found["unit"], found["weights"]) == ("none", [4])


@pytest.mark.exhaustive
def test_a_scope_selects_profiles(speedscope, open_trace, worker, profile):
    trace = open_trace(
        worker("w1"),
        worker("w2"),
        profile("w1", "x", ("a",), start_t=1.0),
        profile("w1", "y", ("b",), start_t=5.0),
        profile("w2", "x", ("c",), start_t=6.0),
        profile(None, None, ("loop",), start_t=6.0),
    )

    for part, expected in [
        ({"worker": "w2"}, ["c"]),
        ({"worker": "scheduler"}, ["loop"]),
        ({"prefix": "y"}, ["b"]),
        ({"start": 5.0}, ["b", "c", "loop"]),
        ({"stop": 5.0}, ["a"]),
    ]:
        assert sorted(functions(speedscope(trace, **part))) == expected, part


@pytest.mark.exhaustive
def test_unusual_text(speedscope, open_trace, worker, profile):
    text = 'x"\\\x00\n\u202e;é𝄞' + "y" * 50_000
    trace = open_trace(worker(text, name=text), profile(text, text, (text, text, "")))

    [found] = speedscope(trace)["profiles"]
    assert len(found["samples"]) == 1
