"""Rule repeated-chunks: several runs process the same entries of the same files."""

import pytest


def test_runs_over_the_same_files(apply_each, worker, chunk, run):
    """Each of ten chunks takes 1 s in each run, of which 0.3 s to open and 0.1 s to read it."""

    def trace(runs, entries=100):
        records = [worker("w1")]
        for number in range(runs):
            for n in range(10):
                key, begin = f"fit{number}-{n}", 10.0 * number + n
                measured = {"open_seconds": 0.3, "read_seconds": 0.1, "source": "TTree"}
                times = {"start_t": begin, "stop_t": begin + 1.0, "until": "processed"}
                # The last run of three has other chunks.
                last = entries if number == 2 else 100
                records += [
                    chunk(
                        key, run_id=1, worker="w1", dataset="DY", filename=f"{n}.root",
                        treename="Events", entry_start=0, entry_stop=last, events=last,
                        **measured, **times,
                    ),
                    *run(key, begin, begin + 1.0, run_id=1),
                ]  # fmt: skip
        return records

    [[(sentence, core_seconds, least, most)], once, [(two_of_three, *_)]] = apply_each(
        "repeated-chunks",
        trace(3),
        trace(1),
        trace(3, entries=90),
        columns="sentence, core_seconds, wall_seconds_min, wall_seconds_max",
        stop_t=30.0,
    )

    assert sentence == (
        "10 of 10 chunks were processed several times (3 times in the median), as by several "
        "runs over the same files: the repetitions took 20.0 core-seconds, 8.0 of them to open "
        "and read the files."
    )
    assert core_seconds == pytest.approx(20.0)
    assert (least, most) == (pytest.approx(0.7 * 8.0), pytest.approx(20.0))
    assert once == []
    assert two_of_three.startswith("10 of 20 chunks were processed several times (2 times in")
