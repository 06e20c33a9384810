from analyze.report.reading import plain, texts
from roast_analyze.report.topics import events


def event(t, payload, topic="x", **fields):
    return {"kind": "event", "t": t, "topic": topic, "payload": payload, **fields}


def test_the_first_events_are_listed_and_long_payloads_cut(open_trace):
    found = events.query(open_trace(*(event(float(i), "y" * 1000) for i in range(250))))

    assert (found.events.rows.height, found.events.total) == (events.EVENT_ROWS, 250)
    assert found.events.rows["t"].to_list() == [float(i) for i in range(events.EVENT_ROWS)]
    assert found.events.rows["payload"][0] == f'"{"y" * (events.PAYLOAD_CHARACTERS - 2)}…'
    assert found.topics.rows.rows() == [("x", 250, 0.0, 249.0)]


def test_an_event_in_several_topics_is_one_row(section):
    """Dask logs events of workers and clients in two topics."""
    graph, left = {"action": "update-graph"}, {"action": "remove-worker", "worker": "t://a"}
    found = section(
        "events",
        event(1.0, graph, "scheduler"),
        event(1.00001, graph, "Client-1"),
        event(2.0, {"action": "add-worker"}, "t://a"),
        event(2.00001, {"action": "add-worker", "worker": "t://a"}, "all", worker="t://a"),
        event(2.00002, {"action": "add-worker", "worker": "t://b"}, "all", worker="t://b"),
        event(3.0, left, "all", worker="t://a"),
        event(3.5, left, "all", worker="t://a"),
        event(4.0, 1, "mine"),
        event(4.001, 1, "mine"),
    )

    _, listed = found.tables
    assert [row[1] for row in texts(listed)] == [
        "scheduler, Client-1", "t://a, all", "all", "all", "all", "mine", "mine",
    ]  # fmt: skip
    assert plain(found.sentences[0]).startswith(
        "7 events were logged with Dask by the scheduler,"
    )
