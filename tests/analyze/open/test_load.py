"""Records that are loaded from good and damaged files, and the losses that are reported."""

import gzip
import json
import os
import re

import duckdb
import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.errors import NotATrace, SchemaTooNew
from roast_analyze.open import block_reader, decompress, load
from roast_analyze.open.discover import Identity, read_segment
from roast_schemas import SCHEMA_VERSION
from sealing import sealed

COMPRESS = {"jsonl": bytes, "jsonl.gz": gzip.compress, "jsonl.zst": zstandard.compress}

NO_HEADER = ("no header", None, "the recorder's version and settings are unknown")
NO_TRAILER = (
    "no trailer",
    None,
    (
        "the recording did not end in order: it was killed, its client was closed, the "
        "scheduler "
        "died, or it is still running; later records are unknown"
    ),
)


@pytest.fixture
def facts(tmp_path):
    """Return the keys of the tasks in a file, and its losses."""

    def facts(content: bytes, name: str = "trace.jsonl"):
        (tmp_path / name).write_bytes(content)
        with Trace(tmp_path / name) as trace:
            keys = [key for (key,) in trace.sql("SELECT key FROM tasks").fetchall()]
            return keys, trace.sql("SELECT reason, records, detail FROM loss").fetchall()

    return facts


# -- good files --------------------------------------------------------------------------


def test_the_compression_does_not_depend_on_the_name(facts, lines, task):
    for suffix, compress in COMPRESS.items():
        assert facts(compress(lines(task("a"))), f"t.{suffix}") == (["a"], [])
    assert facts(zstandard.compress(lines(task("a"))), "wrong-suffix.txt") == (["a"], [])


def test_records_keep_their_order_across_kinds_and_blocks(monkeypatch, open_trace, task, move):
    monkeypatch.setattr(decompress, "_PLAIN_BYTES", 1000)
    monkeypatch.setattr(block_reader, "BLOCK_BYTES", 3000)
    keys = [f"a-{i * 7919 % 1000:04}" for i in range(1000)]
    moves = (move(1.0, key, "waiting>processing") for key in keys)

    pairs = zip(map(task, keys), moves, strict=True)
    trace = open_trace(*(record for pair in pairs for record in pair))

    assert trace.sql("SELECT key FROM tasks").fetchall() == [(key,) for key in keys]
    assert trace.sql("SELECT key FROM transitions").fetchall() == [(key,) for key in keys]
    assert trace.sql("SELECT * FROM loss").fetchall() == []


def test_the_order_of_fields_does_not_matter(facts, lines, task):
    turned = b"".join(
        json.dumps(dict(sorted(json.loads(line).items(), reverse=True))).encode() + b"\n"
        for line in lines(task("a"), task("b")).splitlines()
    )

    assert facts(sealed(turned.replace(SCHEMA_VERSION.encode(), b"2.0"))) == (["a", "b"], [])


def test_a_repeated_kind_in_a_line_loads_one_record(write_trace, task):
    path = write_trace(task("a"))
    path.write_bytes(
        path.read_bytes()
        + b'{"kind":"event","t":1.0,"topic":"x","kind":"task","key":"b"}\n'
        + b'{"kind":"task","t":1.0,"key":"c"}\n'
    )

    with Trace(path) as trace:
        query = "SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM events)"
        assert trace.sql(query).fetchall() == [(3,)]


def test_blank_lines_line_ends_and_byte_order_marks_are_no_damage(facts, lines, task):
    content = lines(task("a", flavor="unknown field", kinds={"x": [1]}))

    windows = content[:-1].replace(b"\n", b"\r\n\r\n") + b"\n"
    assert facts(sealed(windows)) == (["a"], [])
    assert facts(b"\xef\xbb\xbf" + content) == (["a"], [])


def test_raw_tables_have_the_declared_types(open_trace):
    types = dict(
        open_trace()
        .sql(
            "SELECT column_name, data_type FROM duckdb_columns() "
            "WHERE schema_name = 'raw' AND table_name = 'transition'"
        )
        .fetchall()
    )

    assert (types["t"], types["run_id"]) == ("DOUBLE", "BIGINT")
    assert types["startstops"].startswith("STRUCT(")
    assert list(types)[-2:] == ["segment", "trace_id"]


def test_segments_can_be_loaded_into_any_database(write_trace, task):
    with duckdb.connect() as connection:
        load.create_tables(connection)
        for number in (1, 2):
            segment = read_segment(write_trace(task(f"a-{number}"), name=f"{number}.jsonl"))
            identity = Identity("mine", number)
            load.load_segment(connection, segment, identity, load.Progress(), lambda _: None)

        assert connection.sql("SELECT key, segment, trace_id FROM raw.task").fetchall() == [
            ("a-1", 1, "mine"),
            ("a-2", 2, "mine"),
        ]


# -- damaged lines -----------------------------------------------------------------------


def test_unreadable_lines_are_counted(facts, lines, task):
    header, first, *rest = lines(task("a"), task("z")).splitlines(keepends=True)
    for garbage, records in [
        (b"garbage\n", 1),
        (b"\xff\xfe\x00\n", 1),
        (b'{"kind":"task","t":1,"key":"\xff"}\n', 1),
        (b'[1,2]\n"text"\n7\nnull\n', 4),
        (b"{}\n", 1),
        (b'{"kind":null,"t":1}\n', 1),
        (b"\0\0\0\0\n", 1),
        (b'{"kind":"task","t":1,"key":"b"}{"kind":"task","t":1,"key":"c"}\n', 1),
    ]:
        assert facts(header + first + garbage + b"".join(rest)) == (
            ["a", "z"],
            [("unreadable lines", records, "the first is line 3, not counting blank lines")],
        ), garbage


def test_a_line_longer_than_any_record_is_counted(facts, lines, task):
    header, first, *rest = lines(task("a"), task("z")).splitlines(keepends=True)
    overlong = b'{"kind":"task","t":1,"key":"' + b"x" * 17_000_000 + b'"}\n'

    assert facts(header + first + overlong + b"".join(rest)) == (
        ["a", "z"],
        [("overlong lines", 1, "longer than 16 MiB, the limit of a record")],
    )


def test_a_file_cut_within_a_line(facts, lines, task):
    content = lines(task("a"), task("b"))
    cut = content[: content.index(b'"key": "b"') + 5]

    assert facts(cut) == (
        ["a"],
        [("last line unreadable", 1, "line 3; the file was cut off there"), NO_TRAILER],
    )


def test_a_file_cut_within_its_first_line_is_an_empty_trace(facts, lines, task):
    for suffix, nbytes, reason in [
        ("jsonl", 1, "last line unreadable"),
        ("jsonl", 60, "last line unreadable"),
        ("jsonl.zst", 1, "last line unreadable"),  # not yet recognized as compressed
        ("jsonl.zst", 4, "damaged compression"),
        ("jsonl.gz", 20, "damaged compression"),
    ]:
        keys, losses = facts(COMPRESS[suffix](lines(task("a")))[:nbytes])
        assert keys == []
        assert [loss[0] for loss in losses] == [reason, "no header", "no trailer"]


def test_unknown_kinds_are_counted_by_name_up_to_a_limit(facts, lines):
    kinds = ["new"] * 3 + [f"k{i:02}" for i in range(25)]

    _, losses = facts(lines(*({"kind": kind, "t": 1.0} for kind in kinds)))

    assert losses[0] == ("unknown kind", 3, "kind 'new'")
    assert losses[-1] == ("unknown kind", 6, "6 more kinds")
    assert sum(records for _, records, _ in losses) == 28


def test_records_without_a_required_field_are_counted(facts, lines, task):
    expected = (["a"], [("incomplete records", 1, "kind 'task' needs kind, t, key")])
    for record in [
        {"kind": "task", "t": 1.0},
        {"kind": "task", "key": "b"},
        {"kind": "task", "t": "soon", "key": "b"},
        {"kind": "task", "t": 1.0, "key": None},
    ]:
        assert facts(lines(task("a"), record)) == expected


def test_a_record_with_an_infinite_time_does_not_affect_others(tmp_path, facts, lines, task):
    header, *body = lines(task("a", 3.0)).splitlines(keepends=True)
    infinite = b'{"kind":"task","t":1e400,"key":"x"}\n'

    keys, losses = facts(header + infinite + b"".join(body))

    assert keys == ["a"]
    assert ("incomplete records", 1, "kind 'task' needs kind, t, key") in losses
    with Trace(tmp_path / "trace.jsonl") as trace:
        assert trace.sql("SELECT start_t, stop_t FROM trace_info").fetchall() == [(0.0, 100.0)]


# -- checksums ---------------------------------------------------------------------------


def test_a_changed_value_is_detected_by_the_checksum(facts, lines, task):
    content = lines({**task("a-1"), "t": 1.5})
    for before, after in [
        (b'"key": "a-1"', b'"key": "a-7"'),
        (b'"t": 1.5', b'"t": 1.6'),
        (b'"reason": "recording', b'"reason": "Recording'),
        (b'"crc32":', b'"crc32":9'),
        (b'"crc32":', b'"crc3l":'),
        (b"2026.8.0", b"2026.8.1"),
    ]:
        assert content.count(before) == 1
        for compress in COMPRESS.values():
            _, losses = facts(compress(content.replace(before, after)))
            assert [reason for reason, *_ in losses] == ["changed content"], after


def test_a_checksum_spans_blocks(monkeypatch, facts, lines, task):
    monkeypatch.setattr(decompress, "_PLAIN_BYTES", 64)
    monkeypatch.setattr(block_reader, "BLOCK_BYTES", 100)

    assert facts(lines(*map(task, "abc"))) == (["a", "b", "c"], [])


# -- headers and versions ----------------------------------------------------------------


def test_a_file_without_header_is_named_after_its_file(tmp_path, facts):
    keys, losses = facts(b'{"kind":"task","t":1.0,"key":"a"}\n', "run-7.jsonl")

    assert keys == ["a"]
    assert losses == [
        NO_HEADER,
        NO_TRAILER,
    ]
    with Trace(tmp_path / "run-7.jsonl") as trace:
        assert trace.sql("SELECT trace_id FROM tasks").fetchall() == [("run-7",)]


def test_other_versions_are_reported(facts, lines, task):
    for version, reasons in {
        SCHEMA_VERSION: [],
        "2.7": ["newer schema version"],
        "1.7": ["older schema version"],
        "one": ["unknown schema version"],
    }.items():
        changed = lines(task("a")).replace(
            f'"{SCHEMA_VERSION}"'.encode(), json.dumps(version).encode()
        )
        keys, losses = facts(sealed(changed))
        assert (keys, [loss[0] for loss in losses]) == (["a"], reasons)
    before_checksums = re.sub(rb',"crc32":[0-9]+', b"", lines(task("a")))
    assert facts(before_checksums.replace(SCHEMA_VERSION.encode(), b"2.0")) == (["a"], [])


def test_a_newer_major_version_is_refused(facts, lines):
    newer = lines().replace(f'"{SCHEMA_VERSION}"'.encode(), b'"3.0"')

    with pytest.raises(
        SchemaTooNew, match=r"version 3.0, newer than .*: upgrade with pip inst"
    ):
        facts(newer)


# -- damaged compression -----------------------------------------------------------------


def test_a_cut_last_frame_loses_only_that_frame(facts, lines, task):
    *first, last = lines(task("a"), task("b")).splitlines(keepends=True)
    for suffix in ("jsonl.zst", "jsonl.gz"):
        frames = [COMPRESS[suffix](b"".join(first)), COMPRESS[suffix](last)]
        content = b"".join(frames)[:-4]
        cut = f"cut off at byte {len(content)} of the compressed file"
        keys, losses = facts(content, f"t.{suffix}")
        assert keys == ["a", "b"]
        assert losses[0] == ("damaged compression", None, cut)


def test_a_file_cut_within_the_first_bytes_of_its_first_frame(facts):
    for suffix, content in [
        ("jsonl.zst", b"\x28"),
        ("jsonl.zst", b"\x28\xb5\x2f"),
        ("jsonl.gz", b"\x1f\x8b"),
    ]:
        cut = f"cut off at byte {len(content)} of the compressed file"
        keys, losses = facts(content, f"t.{suffix}")
        assert keys == []
        assert losses == [("damaged compression", None, cut), NO_HEADER, NO_TRAILER]


def test_a_damaged_frame_loses_only_that_frame(facts, lines, task):
    compress = zstandard.ZstdCompressor(write_checksum=True).compress
    frames = [compress(line) for line in lines(*map(task, "abc")).splitlines(keepends=True)]
    offset = len(frames[0] + frames[1])
    frames[2] = frames[2][:8] + bytes(byte ^ 0xFF for byte in frames[2][8:])

    keys, losses = facts(b"".join(frames))

    assert keys == ["a", "c"]
    detail = f"once at byte {offset} of the compressed file"
    assert losses[0] == ("damaged compression", None, detail)
    assert ("records missing", 1) in [(reason, records) for reason, records, _ in losses]


def test_garbage_after_a_compressed_trace_is_damage(facts, lines, task):
    keys, losses = facts(gzip.compress(lines(task("a"))) + b"garbage")

    assert keys == ["a"]
    assert [loss[0] for loss in losses] == ["damaged compression"]


# -- files that are not traces -----------------------------------------------------------


def test_files_without_records_are_refused(facts):
    for content, message in [
        (b"\n\n", "is empty"),
        (zstandard.compress(b""), "is empty"),
        (b"\x28\xb5\x2f\xfd" + b"no frame at all", "is empty"),
        (b"\x1f\x8b\x08" + b"no member at all", "is empty"),
        (b"# Notes\n\nno trace\n", "contains no records"),
        (b'{"level":"INFO","message":"another log"}\n' * 9, "contains no records"),
        (b'{"kind":"Pod","apiVersion":"v1"}\n', "contains no records"),
        (b'{"kind":"task","key":"no time"}\n', "contains no records"),
        (b"PAR1" + os.urandom(100_000) + b"PAR1", "contains no records"),
        (b"\0" * 1_000_000, "contains no records"),
    ]:
        with pytest.raises(NotATrace) as caught:
            facts(content)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_error_in_a_line_is_found_by_checking_each_line(monkeypatch, facts, lines, task):
    """DuckDB fails on some lines without naming them; then Python checks every line."""
    append = load._Lane.append
    attempts = []

    def fails_once(self, kind, group):
        attempts.append(kind)
        if len(attempts) == 1:
            raise duckdb.InvalidInputException("unreadable")
        return append(self, kind, group)

    monkeypatch.setattr(load._Lane, "append", fails_once)
    header, *body = lines(task("a")).splitlines(keepends=True)

    assert facts(header + b"{broken\n" + b"".join(body)) == (
        ["a"],
        [("unreadable lines", 1, "the first is line 2, not counting blank lines")],
    )
