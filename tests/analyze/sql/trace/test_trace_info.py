"""View trace_info."""

import json

from roast_analyze import Trace


def test_columns_of_a_segment(write_trace):
    header = {
        "kind": "header", "t": 1.0, "schema_version": "1.0", "trace_id": "T", "segment": 1,
        "versions": {"roast-trace": "0.1", "dask": "d", "distributed": "e", "python": "p"},
        "scheduler": "tcp://s", "settings": {"a": 1},
        "utc_offset_seconds": 3600.0, "clock_offset_seconds": 0.5,
    }  # fmt: skip
    path = write_trace(stop_t=9.0)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([str(header).replace("'", '"'), *lines[1:]]) + "\n")

    with Trace(path) as trace:
        assert trace.sql("SELECT * FROM trace_info").fetchall() == [
            (
                1, "1.0", 1.0, 9.0, True, "d", "e", "p", "0.1", "tcp://s", 3600.0, 0.5,
                '{"a":1}', 2, None, str(path), "T",
            )
        ]  # fmt: skip


def test_segments_in_order(tmp_path, lines, task):
    for number in (1, 2, 10):
        (tmp_path / f"part-{number}.jsonl").write_bytes(
            lines(task(f"a-{number}"), segment={1: 1, 2: 2, 10: 3}[number])
        )

    with Trace(tmp_path) as trace:
        assert trace.sql("SELECT segment, clean_end, records FROM trace_info").fetchall() == [
            (1, True, 3),
            (2, True, 3),
            (3, True, 3),
        ]
        assert trace.sql("SELECT key FROM tasks").fetchall() == [("a-1",), ("a-2",), ("a-10",)]


def test_redacted_values(write_trace):
    path = write_trace()
    *records, trailer = map(json.loads, path.read_text().splitlines())
    trailer["redacted_values"] = 7
    path.write_text("\n".join(map(json.dumps, [*records, trailer])) + "\n")

    with Trace(path) as trace:
        assert trace.sql("SELECT redacted_values FROM trace_info").fetchall() == [(7,)]
