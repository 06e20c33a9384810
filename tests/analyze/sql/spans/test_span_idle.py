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
        ("open", 9.0, 10.0, 2.0, None, 2.0, 1.0),
        ("outer", 2.0, 8.0, 20.0, 7.0, 13.0, 13.0 / 20.0),
    ]
