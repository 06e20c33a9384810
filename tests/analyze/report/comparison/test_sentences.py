from dataclasses import replace

from roast_analyze.report.comparison import sentences


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def busy(worker, task, run, seconds: float, prefix: str = "x") -> list[dict]:
    """Records of a worker that computed for so many seconds."""
    return [worker("w1"), task(f"{prefix}-1"), *run(f"{prefix}-1", 1.0, 1.0 + seconds)]


def test_verdict(compare):
    compared = compare(a=[])

    def verdict(**seconds: float) -> str:
        [trace] = compared.traces
        traces = [
            replace(trace, label=name, run=replace(trace.run, wall_seconds=wall))
            for name, wall in seconds.items()
        ]
        return plain(sentences.verdict(replace(compared, traces=tuple(traces))))

    assert verdict(a=10.0, b=15.0) == "b took 15 s, 1.5 times as long as a (10 s)."
    assert verdict(a=10.0, b=10.01) == "b took 10 s, as long as a (10 s)."
    assert verdict(a=0.0, b=2.0) == "b took 2 s, not as long as a (0 s)."
    assert verdict(a=10.0, b=5.0, c=20.0) == (
        "Of 3 traces, c took the longest, 20 s: 4 times as long as b (5 s)."
    )


def test_core_time(compare, worker, task, run, move):
    started = [{"action": "compute", "start": 5.0, "stop": 8.0}]
    failed = [
        task("y-1"),
        move(5.0, "y-1", "waiting>processing", worker="w1"),
        move(8.0, "y-1", "processing>erred", "task-erred-1", worker="w1", startstops=started),
    ]
    compared = compare(
        a=busy(worker, task, run, 2.0), b=[*busy(worker, task, run, 3.0), *failed]
    )
    a, b = compared.traces

    def core_time(*traces) -> str:
        return plain(sentences.core_time(replace(compared, traces=traces)))

    assert core_time(a, b) == (
        "CPU utilization was 20 % in a and 60 % in b. Attempts with discarded results computed "
        "for 3 s in b."
    )
    # Of many traces, only the extremes are named.
    assert core_time(a, a, a, a, b).startswith("CPU utilization was 20 % in a to 60 % in b.")
    assert core_time(a, a, a, a, a) == "CPU utilization was 20 % in each of 5 traces."


def test_incomplete_and_omitted_traces(compare):
    compared = compare(a=[], b=[{"kind": "loss", "t": 1.0, "reason": "late", "records": 3}])

    assert sentences.completeness(compared) == (
        "b is incomplete: lost records are missing in all numbers."
    )
    whole = replace(compared, traces=compared.traces[:1])
    assert sentences.completeness(whole) == "All traces are complete."
    assert sentences.left_out(whole) == ""
    assert plain(sentences.left_out(replace(whole, left_out=tuple("stuvwx")))) == (
        "6 more traces are left out, because the limit is 24: s, t, u and 3 more."
    )
    assert sentences.core_time(whole).startswith("No worker was recorded in any trace")


def test_over_time(compare, worker, task, run):
    compared = compare(a=busy(worker, task, run, 2.0), b=busy(worker, task, run, 4.0))

    text = plain(sentences.over_time(compared, with_limit=False))

    assert text.endswith("from the first task to the last: 1 of 1 in a and 1 of 1 in b.")
    assert "memory limit" not in text
    assert "memory limit" in sentences.over_time(compared, with_limit=True)


def test_memory(compare, worker, sample):
    def held(memory):
        return [worker("w1"), sample(1.0, "w1", memory=memory, nthreads=1)]

    compared = compare(a=held(1024**3), b=held(3 * 1024**3))

    assert plain(sentences.memory(compared)) == (
        "b had the highest peak memory, 3 GiB: 3 times as much as a (1 GiB)."
    )
    assert sentences.memory(replace(compared, traces=compared.traces[:1])) == ""


def test_difference(compare, worker, task, run):
    compared = compare(
        a=busy(worker, task, run, 2.0),
        b=busy(worker, task, run, 3.0),
        c=busy(worker, task, run, 1.0, prefix="other"),
    )

    def difference(listing):
        return plain(sentences.difference(compared, listing, "prefix", "prefixes"))

    assert difference(compared.prefixes) == (
        "Of the prefixes, x differs most in compute time: none in c, 2 s in a."
    )
    same = compared.prefixes.rows.with_columns(difference_seconds=0.0)
    assert difference(replace(compared.prefixes, rows=same)) == (
        "The compute time by prefix is the same in all traces."
    )
    assert difference(replace(compared.prefixes, total=0)) == ""


def test_facts(compare):
    def facts(**values):
        return [
            {"kind": "environment", "t": 0.0, "section": "s", "name": name, "value": value}
            for name, value in values.items()
        ]

    compared = compare(a=facts(x="1", y="2"), b=facts(x="1", y="3"))

    assert plain(sentences.facts(compared)) == (
        "1 recorded fact about software, machines and settings differs, in s; 1 is the same. "
        "Identifiers and addresses, which always differ, are left out."
    )
    same = replace(compared, facts=replace(compared.facts, total=0))
    assert plain(sentences.facts(same)) == (
        "1 recorded fact about software, machines and settings is the same in all traces."
    )
    assert sentences.facts(replace(same, facts_in_common=0)) == (
        "No facts about software, machines and settings were recorded."
    )
