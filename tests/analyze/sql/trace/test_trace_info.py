"""View trace_info."""

import json

from roast_analyze import Trace


def test_columns_of_a_segment(write_trace):
    header = {
        "kind": "header", "t": 1.0, "schema_version": "1.0", "trace_id": "T", "segment": 1,
        "versions": {"roast-trace": "0.1", "dask": "d", "distributed": "e", "python": "p"},
        "scheduler": "tcp://s", "settings": {"a": 1, "label": "v2"},
        "utc_offset_seconds": 3600.0, "clock_offset_seconds": 0.5,
    }  # fmt: skip
    path = write_trace(stop_t=9.0)
    _, trailer = map(json.loads, path.read_text().splitlines())
    lines = map(json.dumps, [header, trailer | {"redacted_values": 7}])
    path.write_text("\n".join(lines) + "\n")

    with Trace(path) as trace:
        assert trace.rows("SELECT * FROM trace_info") == [
            (
                1, "1.0", 1.0, 9.0, True, "recording was stopped", "d", "e", "p", "0.1",
                "tcp://s", 3600.0, 0.5, '{"a":1,"label":"v2"}', 2, 7, str(path), "v2", "T",
            )
        ]  # fmt: skip


def test_segments_in_order(tmp_path, lines, task):
    for segment, number in enumerate((1, 2, 10), start=1):
        content = lines(task(f"a-{number}"), segment=segment)
        (tmp_path / f"part-{number}.jsonl").write_bytes(content)

    with Trace(tmp_path) as trace:
        segments = trace.rows("SELECT segment, clean_end, records FROM trace_info")
        assert segments == [(1, True, 3), (2, True, 3), (3, True, 3)]
        assert trace.rows("SELECT key FROM tasks") == [("a-1",), ("a-2",), ("a-10",)]
