"""Views whose rows a time range cuts, or includes if they cross its boundary."""

from roast_analyze import Trace


def test_rows_at_the_ends_of_a_range(write_trace, task):
    """A key that is wanted, a pause, and a transfer that both ends reported."""
    wants = [
        {"t": t, "action": a, "keys": ["x"]} for t, a in ((2.0, "desires"), (8.0, "releases"))
    ]
    status = {"kind": "event", "topic": "w1", "worker": "w1"}
    changed = {"action": "worker-status-change", "prev-status": "x"}
    moved = {"kind": "transfer", "source": "w1", "destination": "w2", "keys": {"a": 1}}
    path = write_trace(
        task("x"),
        {"kind": "wanted_keys", "t": 8.0, "client": "C", "changes": wants},
        {**status, "t": 2.0, "payload": {**changed, "status": "paused"}},
        {**status, "t": 8.0, "payload": {**changed, "status": "running"}},
        {**moved, "t": 6.0, "worker": "w2", "start_t": 4.5, "stop_t": 6.0, "nbytes": 1},
        {**moved, "t": 6.5, "worker": "w1", "start_t": 4.75, "stop_t": 6.5, "nbytes": 1},
    )

    for time_range, wanted, paused, transferred in [
        ({"stop": 5}, [("x", 2.0, 5.0, 3.0)], [(2.0, 5.0, 3.0)], [("both",)]),
        ({"start": 5, "stop": 6}, [("x", 5.0, 6.0, 1.0)], [(5.0, 6.0, 1.0)], [("both",)]),
        ({"start": 9}, [], [], []),
    ]:
        with Trace(path, **time_range) as part:
            query = "SELECT key, start_t, stop_t, seconds FROM wanted_keys"
            assert part.rows(query) == wanted
            assert part.rows("SELECT start_t, stop_t, seconds FROM pauses") == paused
            assert part.rows("SELECT reported_by FROM transfers") == transferred
