"""The command ``why``, and ``Trace.why``."""

import csv

import pytest

from roast_analyze import Trace
from roast_analyze.errors import TraceError


@pytest.fixture
def runs(write_trace, worker, task, run):
    """Write traces of 10 tasks of 1 s, and of 2 s, on one thread."""

    def trace(name, seconds):
        records = [worker("w1"), *(task(f"fit-{n}") for n in range(10))]
        for n in range(10):
            records += run(f"fit-{n}", n * seconds, (n + 1) * seconds)
        return write_trace(*records, name=f"{name}.jsonl", trace_id=name, stop_t=10 * seconds)

    return trace("fast", 1.0), trace("slow", 2.0)


def test_sentences_and_table(analyze, runs):
    code, out, err = analyze("why", *runs)

    assert (code, err) == (0, "")
    text = out.replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith(
        "slow took 20 s, +10 s compared with fast (10 s); +10 s of core time.\n\n"
        "fit took 2 times as long per result (2 s instead of 1 s): +10 s of wall time.\n"
    )
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "fit: compute time per 1 s 2 s +10 s +10 s 500 ms yes" in rows
    assert "difference +10 s +10 s –" in rows
    assert "No facts about software, machines and settings were recorded." in rows
    message = "roast-analyze: one trace has no difference: roast-analyze why BASE… NEW\n"
    assert analyze("why", runs[0]) == (2, "", message)


@pytest.mark.exhaustive
def test_formats_and_details(analyze, runs):
    code, out, _ = analyze("why", *runs, "--format", "csv")
    assert code == 0
    [row] = csv.DictReader(out.splitlines())
    assert (row["term"], row["prefix"], row["significant"]) == ("cost", "fit", "True")
    assert float(row["wall_seconds"]) == pytest.approx(10.0)
    _, out, _ = analyze("why", *runs, "--details", "--format", "csv")
    row = next(csv.DictReader(out.splitlines()))
    assert (row["part"], row["detail"], row["branch"]) == ("kept result", "", "")
    # The last trace is the new one.
    _, out, _ = analyze("why", *runs[::-1], "--details")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0].startswith("fast took 10 s, −10 s compared")
    assert "term dataset detail branch wall time core time" in lines


@pytest.mark.exhaustive
def test_in_python(runs):
    with Trace(runs[0]) as fast, Trace(runs[1]) as slow:
        assert slow.why(fast)["wall_seconds"].to_list() == [pytest.approx(10.0)]
        assert slow.why(fast, fast)["significant"].to_list() == [True]
        assert fast.why(slow, details=True)["wall_seconds"].sum() == pytest.approx(-10.0)
        with pytest.raises(TraceError, match="no base given"):
            slow.why()
        with pytest.raises(TypeError, match=r"invalid base '.*': open it, as with Trace\('"):
            slow.why(str(runs[0]))
