"""Rule merging: long merges of chunk results."""

import pytest


@pytest.fixture
def merged(worker, task, chunk, run):
    """Return the records of eight chunks of 1 s and merges of `fan_in` results each.

    The last merge merges those before it, unless `is_merged_again` is false.
    """

    def merged(
        fan_in: int, merge_seconds: float, typename: str = "bytes", is_merged_again: bool = True
    ) -> list[dict]:
        chunks = [f"Dijet-{number}" for number in range(8)]
        records, t = [worker("w1")], 0.0
        for number, key in enumerate(chunks):
            file = {"dataset": "DY", "filename": f"{number}.root", "treename": "Events"}
            records += [
                task(key),
                chunk(key, **file, entry_start=0, entry_stop=9),
                *run(key, t, t + 1.0, nbytes=2**20, typename=typename),
            ]
            t += 1.0
        merges = {
            f"reduce-{number}": chunks[number * fan_in : (number + 1) * fan_in]
            for number in range(8 // fan_in)
        }
        if is_merged_again and len(merges) > 1:
            merges["reduce-all"] = list(merges)
        for key, inputs in merges.items():
            records += [task(key, dependencies=inputs), *run(key, t, t + merge_seconds)]
            t += merge_seconds
        return records

    return merged


def test_long_merges(apply, merged):
    """Two merges of four results, and one of theirs, take 1.5 times as long as the chunks."""
    [(core_seconds, least, most, sentence, change)] = apply(
        "merging",
        *merged(4, 4.0),
        columns="core_seconds, wall_seconds_min, wall_seconds_max, sentence, change",
        stop_t=20.0,
    )
    # 2 % of 20 s is usual.
    assert core_seconds == pytest.approx(12.0 - 0.02 * 20.0)
    assert least < core_seconds < most
    assert sentence == (
        "3 merges of chunk results took 12.0 s, 60 % of the compute time of all tasks: 4 s "
        "each, beside 1 s of a chunk. A chunk result has 1 MiB on average, compressed by "
        "coffea: in memory it is larger, and each merge decompresses it."
    )
    assert change == (
        "Return smaller results from the processor (fewer bins, categories or systematic "
        "variations per histogram), or use fewer and larger chunks. With a larger treereduction"
        " (now 4), fewer results are merged again."
    )


def test_results_that_are_not_compressed(apply, merged):
    [(sentence,)] = apply("merging", *merged(4, 4.0, typename="dict"), columns="sentence")
    assert sentence.endswith(" A chunk result has 1 MiB on average.")


def test_short_merges(apply, merged):
    """Three merges of 0.25 s are 9 % of the compute time."""
    assert apply("merging", *merged(4, 0.25)) == []


def test_the_mean_duration_of_long_merges(apply, merged):
    [(sentence,)] = apply("merging", *merged(8, 123.4), columns="sentence")
    assert ": 123 s each, beside 1 s of a chunk. " in sentence


@pytest.mark.parametrize(("fan_in", "merges"), [(8, "One merge"), (4, "2 merges")])
def test_results_that_are_merged_once(apply, merged, fan_in, merges):
    """A larger fan-in would not help."""
    records = merged(fan_in, fan_in, is_merged_again=False)
    [(sentence, change)] = apply("merging", *records, columns="sentence, change")
    assert sentence.startswith(f"{merges} of chunk results took 8.0 s, 50 % of ")
    assert "treereduction" not in change


def test_merges_of_other_tasks(apply, worker, task, run):
    """A reduction of plain Dask has no role."""
    records = [worker("w1"), task("a-1"), task("reduce-1", dependencies=["a-1"])]
    assert apply("merging", *records, *run("a-1", 0.0, 1.0), *run("reduce-1", 1.0, 9.0)) == []
