"""View span_idle."""

METRIC = {
    "kind": "fine_metric", "t": 9.0, "worker": "w1", "context": "execute", "prefix": "a",
    "unit": "seconds", "activity": "thread-cpu",
}  # fmt: skip


def span(span_id, parent_id=None):
    names = {"span_id": span_id, "parent_id": parent_id, "span_name": [span_id]}
    return {"kind": "span", "t": 0.0, **names}


def test_thread_time_that_metrics_do_not_explain(rows, worker, gone, task, run, move):
    """Two workers with two threads each; the second one leaves after 6 s."""
    assert rows(
        "SELECT span_id, start_t, stop_t, thread_seconds, known_seconds, idle_seconds, "
        "idle_share FROM span_idle ORDER BY span_id",
        worker("w1", nthreads=2),
        worker("w2", nthreads=2),
        span("inner", "outer"),
        span("open"),
        span("outer"),
        task("a", t=2.0, span_id="outer"),
        task("b", t=4.0, span_id="inner"),
        task("c", t=9.0, span_id="open"),
        *run("a", 2.0, 5.0),
        *run("b", 4.0, 8.0),
        gone("w2", 6.0, "retire-workers-6.0"),
        move(9.0, "c", "waiting>processing", worker="w1"),
        {**METRIC, "span_id": "outer", "delta": 3.0},
        {**METRIC, "span_id": "inner", "delta": 4.0},
        {**METRIC, "span_id": "inner", "delta": 99.0, "context": "gather-dep"},
        stop_t=10.0,
    ) == [
        ("inner", 4.0, 8.0, 12.0, 4.0, 8.0, 8.0 / 12.0),
        # Without metrics it is unknown whether the rest was idle.
        ("open", 9.0, 10.0, 2.0, None, None, None),
        ("outer", 2.0, 8.0, 20.0, 7.0, 13.0, 13.0 / 20.0),
    ]


def test_computing_on_a_lost_worker_is_not_idle(rows, worker, gone, task, run):
    """Of 10 s, 9 s were spent computing; the metrics of 5 s were lost with the worker."""
    assert rows(
        "SELECT thread_seconds, known_seconds, idle_seconds, idle_share FROM span_idle",
        worker("w1", nthreads=1),
        span("a"),
        *(task("a-1", t=0.0, span_id="a"), *run("a-1", 0.0, 5.0)),
        gone("w1", 5.0, "handle-worker-cleanup-1.0"),
        worker("w2", 5.0, nthreads=1),
        *(task("a-2", t=0.0, span_id="a"), *run("a-2", 6.0, 10.0, worker="w2")),
        {**METRIC, "span_id": "a", "delta": 4.0},
    ) == [(10.0, 4.0, 1.0, 0.1)]
