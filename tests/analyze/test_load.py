"""What is read of good and of bad input, and what is said about the rest."""

import gzip
import json
import os
import re
import struct
import zlib
from pathlib import Path

import duckdb
import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.errors import NotATrace, SchemaTooNew, TraceNotFound
from roast_analyze.open import block_reader as lines_module
from roast_analyze.open import decompress as content
from roast_analyze.open import load
from roast_analyze.open.discover import Identity, read_segment
from roast_schemas import SCHEMA_VERSION
from sealing import sealed

TASK = b'{"kind":"task","t":1.0,"key":"a"}\n'


def facts(path):
    """Keys of the tasks that were read, and what was lost."""
    with Trace(path) as trace:
        keys = [key for (key,) in trace.sql("SELECT key FROM tasks").fetchall()]
        return keys, trace.sql("SELECT reason, records, detail FROM loss").fetchall()


# -- good input --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("t.jsonl", bytes),
        ("t.jsonl.zst", zstandard.ZstdCompressor().compress),
        ("t.jsonl.gz", gzip.compress),
        ("named-wrongly.txt", zstandard.ZstdCompressor().compress),
    ],
)
def test_what_a_file_holds_decides_how_it_is_read(tmp_path, lines, task, name, compress):
    (tmp_path / name).write_bytes(compress(lines(task("a"))))

    assert facts(tmp_path / name) == (["a"], [])


def test_records_are_read_in_order_whatever_stands_between_them(open_trace, task):
    keys = [f"a-{i}" for i in (3, 1, 2, 9, 4)]
    events = ({"kind": "event", "t": 1.0, "topic": f"x-{key}"} for key in keys)

    pairs = zip(map(task, keys), events, strict=True)
    trace = open_trace(*(record for pair in pairs for record in pair))

    assert [key for (key,) in trace.sql("SELECT key FROM tasks").fetchall()] == keys
    assert trace.sql("SELECT topic FROM events").fetchall() == [(f"x-{key}",) for key in keys]
    assert trace.sql("SELECT * FROM loss").fetchall() == []


def test_blocks_that_are_read_ahead_do_not_disturb_those_that_are_loaded(
    monkeypatch, open_trace, task, move
):
    monkeypatch.setattr(content, "_PLAIN_BYTES", 1000)
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", 3000)
    keys = [f"a-{i:04}" for i in range(1000)]
    moves = (move(1.0, key, "waiting>processing") for key in keys)

    pairs = zip(map(task, keys), moves, strict=True)
    trace = open_trace(*(record for pair in pairs for record in pair))

    assert trace.sql("SELECT key FROM tasks").fetchall() == [(key,) for key in keys]
    assert trace.sql("SELECT key FROM transitions").fetchall() == [(key,) for key in keys]
    assert trace.sql("SELECT * FROM loss").fetchall() == []


def test_the_kind_may_stand_anywhere_in_a_line(write_trace, task):
    path = write_trace(task("a"), task("b"))
    turned = b"".join(
        json.dumps(dict(sorted(json.loads(line).items(), reverse=True))).encode() + b"\n"
        for line in path.read_bytes().splitlines()
    )
    path.write_bytes(sealed(turned.replace(SCHEMA_VERSION.encode(), b"2.0")))

    assert facts(path) == (["a", "b"], [])


def test_a_kind_that_stands_twice_in_a_line_is_the_one_that_duckdb_takes(write_trace, task):
    path = write_trace(task("a"))
    path.write_bytes(
        path.read_bytes()
        + b'{"kind":"event","t":1.0,"topic":"x","kind":"task","key":"b"}\n'
        + b'{"kind":"task","t":1.0,"key":"c"}\n'
    )

    with Trace(path) as trace:
        read = trace.sql("SELECT key FROM tasks ORDER BY key").fetchall()
        events = trace.sql("SELECT topic FROM events").fetchall()

    assert len(read) + len(events) == 3


def test_blank_lines_and_windows_line_ends_are_no_damage(write_trace, task):
    path = write_trace(task("a"))
    path.write_bytes(sealed(path.read_bytes()[:-1].replace(b"\n", b"\r\n\r\n") + b"\n"))

    assert facts(path) == (["a"], [])


def test_a_byte_order_mark_is_no_damage(write_trace, task):
    path = write_trace(task("a"))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    assert facts(path) == (["a"], [])


def test_fields_that_nobody_knows_are_ignored(open_trace, task):
    trace = open_trace(task("a", flavour="new", kinds={"x": [1]}))

    assert trace.sql("SELECT key FROM tasks").fetchall() == [("a",)]
    assert trace.sql("SELECT * FROM loss").fetchall() == []


@pytest.mark.parametrize(
    "name",
    ["a*.jsonl", "a?.jsonl", "a[b].jsonl", "[].jsonl", "it's.jsonl", 'say "a".jsonl',
     "a{b,c}.jsonl", "a%20b#c.jsonl", "$path.jsonl", "новый файл.jsonl", "a\nb.jsonl",
     "--html.jsonl", "back\\slash.jsonl"],
)  # fmt: skip
def test_a_file_name_means_itself(tmp_path, lines, task, name):
    for other in ("ab.jsonl", "axxx.jsonl", "ab", "a.jsonl"):
        (tmp_path / other).write_bytes(lines(task("decoy")))
    (tmp_path / name).write_bytes(lines(task("a")))

    assert facts(tmp_path / name) == (["a"], [])


def test_a_folder_with_signs_of_patterns_in_its_name(tmp_path, lines, task):
    folder = tmp_path / "a[1]*?'"
    folder.mkdir()
    (folder / "1.jsonl").write_bytes(lines(task("a")))

    assert facts(folder) == (["a"], [])


def test_other_files_of_a_folder_are_left_alone(tmp_path, lines, task):
    (tmp_path / "1.jsonl").write_bytes(lines(task("a")))
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "._1.jsonl").write_bytes(b"\0")
    (tmp_path / "2.jsonl").mkdir()

    assert facts(tmp_path) == (["a"], [])


def test_a_segment_without_header_goes_with_its_neighbours(tmp_path, lines, task):
    headless = lines(task("a"), segment=1).split(b"\n", 1)[1]
    (tmp_path / "1.jsonl").write_bytes(headless.replace(b'"header": 1, ', b""))
    (tmp_path / "2.jsonl").write_bytes(lines(task("b"), segment=2))

    with Trace(tmp_path) as trace:
        assert trace.sql("SELECT trace_id, tasks FROM run").fetchall() == [("T", 2)]
        assert trace.sql("SELECT reason FROM loss").fetchall() == [
            ("changed content",),
            ("no header",),
        ]
        assert trace.sql("SELECT detail FROM loss WHERE reason = 'no header'").fetchall() == [
            ("segment 1: what recorded it, and with which settings, is lost",)
        ]


def test_raw_tables_have_the_declared_types(tmp_path, lines):
    with Trace(_written(tmp_path, lines())) as trace:
        types = dict(
            trace.sql(
                "SELECT column_name, data_type FROM duckdb_columns() "
                "WHERE schema_name = 'raw' AND table_name = 'transition'"
            ).fetchall()
        )

    assert types["t"] == "DOUBLE"
    assert types["run_id"] == "BIGINT"
    assert types["startstops"].startswith("STRUCT(")
    assert list(types)[-2:] == ["segment", "trace_id"]


# -- damage that is counted --------------------------------------------------------------


NO_HEADER = ("no header", None, "what recorded it, and with which settings, is lost")
NO_TRAILER = (
    "no trailer",
    None,
    (
        "the recording did not end in order: it was killed, its client closed, the scheduler "
        "died, or it still runs; what came after the last record is unknown"
    ),
)


@pytest.mark.parametrize(
    ("garbage", "records"),
    [
        (b"garbage\n", 1),
        (b"\xff\xfe\x00\n", 1),
        (b'{"kind":"task","t":1,"key":"\xff"}\n', 1),
        (b'[1,2]\n"text"\n7\nnull\n', 4),
        (b"{}\n", 1),
        (b'{"kind":null,"t":1}\n', 1),
        (b"\0\0\0\0\n", 1),
        (b'{"kind":"task","t":1,"key":"b"}{"kind":"task","t":1,"key":"c"}\n', 1),
        (b"x" * 10_000_000 + b"\n", 1),
    ],
    ids=[
        "text", "bytes", "bad UTF-8", "no objects", "no kind", "null kind", "NULs",
        "two on a line", "10 MB",
    ],
)  # fmt: skip
def test_lines_that_cannot_be_read_are_counted(tmp_path, lines, task, garbage, records):
    header, *body = lines(task("a"), task("z")).splitlines(keepends=True)

    assert facts(_written(tmp_path, header + body[0] + garbage + b"".join(body[1:]))) == (
        ["a", "z"],
        [("unreadable lines", records, "the first is line 3, not counting blank lines")],
    )


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
@pytest.mark.parametrize(
    ("there", "changed"),
    [
        (b'"key": "a-1"', b'"key": "a-7"'),
        (b'"t": 1.5', b'"t": 1.6'),
        (b'"reason": "recording', b'"reason": "Recording'),
        (b'"crc32":', b'"crc32":9'),
        (b'"crc32":', b'"crc3l":'),
        (b"2026.8.0", b"2026.8.1"),
    ],
)
def test_a_value_that_is_another_one_is_known_by_the_checksum(
    tmp_path, lines, task, there, changed, compress
):
    whole = lines({**task("a-1"), "t": 1.5})
    assert whole.count(there) == 1

    _, lost = facts(_written(tmp_path, compress(whole.replace(there, changed))))

    assert [reason for reason, *_ in lost] == ["changed content"]


@pytest.mark.parametrize(
    ("compress", "nbytes", "reason"),
    [
        (bytes, 1, "last line unreadable"),
        (bytes, 12, "last line unreadable"),
        (bytes, 60, "last line unreadable"),
        # Less than what tells that it is compressed.
        (zstandard.compress, 1, "last line unreadable"),
        (zstandard.compress, 4, "damaged compression"),
        (zstandard.compress, 60, "damaged compression"),
        (gzip.compress, 20, "damaged compression"),
    ],
)
def test_a_file_cut_within_its_first_line_is_a_trace_of_nothing(
    tmp_path, lines, task, compress, nbytes, reason
):
    left = compress(lines(task("a")))[:nbytes]

    keys, lost = facts(_written(tmp_path, left))

    assert keys == []
    assert [found[0] for found in lost] == [reason, "no header", "no trailer"]


def test_traces_from_before_there_were_checksums_are_whole_without(tmp_path, lines, task):
    older = re.sub(rb',"crc32":[0-9]+', b"", lines(task("a"))).replace(
        SCHEMA_VERSION.encode(), b"2.0"
    )

    assert facts(_written(tmp_path, older)) == (["a"], [])


def test_the_checksum_goes_on_where_reading_goes_on(tmp_path, lines, task, monkeypatch):
    monkeypatch.setattr(content, "_PLAIN_BYTES", 64)
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", 100)

    assert facts(_written(tmp_path, lines(*map(task, "abc")))) == (["a", "b", "c"], [])


def test_a_line_too_long_for_any_record_is_counted(tmp_path, lines, task):
    header, *body = lines(task("a"), task("z")).splitlines(keepends=True)
    monster = b'{"kind":"task","t":1,"key":"' + b"x" * 50_000_000 + b'"}\n'

    assert facts(_written(tmp_path, header + body[0] + monster + b"".join(body[1:]))) == (
        ["a", "z"],
        [("overlong lines", 1, "longer than 16 MiB, which no record is")],
    )


def test_a_line_cut_in_the_middle(tmp_path, lines, task):
    whole = lines(task("a"), task("b"))
    cut = whole[: whole.index(b'"key": "b"') + 5]

    assert facts(_written(tmp_path, cut)) == (
        ["a"],
        [
            ("last line unreadable", 1, "line 3; the file was cut off there"),
            NO_TRAILER,
        ],
    )


def test_unknown_kinds_are_counted_by_name_and_many_of_them_together(tmp_path, lines):
    kinds = ["new"] * 3 + [f"k{i:02}" for i in range(25)]

    _, lost = facts(_written(tmp_path, lines(*({"kind": kind, "t": 1.0} for kind in kinds))))

    assert lost[0] == ("unknown kind", 3, "kind 'new'")
    assert lost[-1] == ("unknown kind", 6, "6 more kinds")
    assert sum(records for _, records, _ in lost) == 28


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "task", "t": 1.0},
        {"kind": "task", "key": "b"},
        {"kind": "task", "t": "soon", "key": "b"},
        {"kind": "task", "t": 1.0, "key": None},
    ],
)
def test_records_without_what_they_must_have_are_left_out_and_counted(open_trace, task, record):
    trace = open_trace(task("a"), record)

    assert trace.sql("SELECT key FROM tasks").fetchall() == [("a",)]
    assert trace.sql("SELECT reason, records, detail FROM loss").fetchall() == [
        ("incomplete records", 1, "kind 'task' needs kind, t, key")
    ]


def test_a_record_out_of_all_time_is_left_out_and_spoils_no_other(tmp_path, lines, task):
    header, *body = lines(task("a", 3.0)).splitlines(keepends=True)
    endless = b'{"kind":"task","t":1e400,"key":"x"}\n'
    path = _written(tmp_path, header + endless + b"".join(body))

    assert facts(path)[0] == ["a"]
    assert ("incomplete records", 1, "kind 'task' needs kind, t, key") in facts(path)[1]
    with Trace(path) as trace:
        assert trace.sql("SELECT start_t, stop_t FROM trace_info").fetchall() == [(0.0, 100.0)]


@pytest.mark.parametrize("name", ["0.jsonl", "bad.jsonl"], ids=["first", "last"])
def test_an_empty_file_beside_a_segment_is_named_and_costs_nothing_else(
    tmp_path, lines, task, name
):
    _written(tmp_path, lines(task("a")), "1.jsonl")
    _written(tmp_path, b"", name)

    assert facts(tmp_path) == (["a"], [("empty file", None, f"{name} is empty")])


def test_no_header(tmp_path):
    with Trace(_written(tmp_path, TASK, "run-7.jsonl")) as trace:
        assert trace.sql("SELECT key, trace_id FROM tasks").fetchall() == [("a", "run-7")]
        assert trace.sql("SELECT reason, records, detail FROM loss").fetchall() == [
            NO_HEADER,
            NO_TRAILER,
        ]


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (SCHEMA_VERSION, None),
        ("2.7", "newer schema version"),
        ("1.7", "older schema version"),
        ("one", "unknown schema version"),
    ],
)
def test_a_version_that_differs_a_little_is_read_with_a_word(
    tmp_path, lines, task, version, reason
):
    changed = lines(task("a")).replace(
        f'"{SCHEMA_VERSION}"'.encode(), json.dumps(version).encode()
    )

    keys, lost = facts(_written(tmp_path, sealed(changed)))

    assert keys == ["a"]
    assert [found[0] for found in lost] == ([reason] if reason else [])


def test_zstd_cut_in_its_last_frame_loses_only_that_frame(tmp_path, lines, task):
    *first, last = lines(task("a"), task("b")).splitlines(keepends=True)
    frames = [zstandard.compress(b"".join(first)), zstandard.compress(last)]

    length = len(frames[0] + frames[1]) - 4
    cut = ("damaged compression", None, f"cut off at byte {length} of the compressed file")
    assert facts(_written(tmp_path, frames[0] + frames[1][:-4], "t.jsonl.zst")) == (
        ["a", "b"],
        [cut, NO_TRAILER],
    )


def test_zstd_damaged_in_a_frame_between_keeps_the_others(tmp_path, lines, task):
    frames = _zstd_frames(lines(task("a"), task("b"), task("c")))
    begin = len(frames[0] + frames[1])
    damaged = frames[2][:8] + bytes(byte ^ 0xFF for byte in frames[2][8:])

    keys, lost = facts(
        _written(tmp_path, b"".join([*frames[:2], damaged, *frames[3:]]), "t.jsonl.zst")
    )

    assert keys == ["a", "c"]
    assert lost[0] == (
        "damaged compression", None, f"once at byte {begin} of the compressed file",
    )  # fmt: skip
    assert ("records missing", 1) in [(reason, records) for reason, records, _ in lost]


@pytest.mark.parametrize("missing_bytes", [1, 9, 40])
def test_gzip_that_was_cut_keeps_what_comes_before(tmp_path, lines, task, missing_bytes):
    members = [gzip.compress(line) for line in lines(task("a"), task("b")).splitlines(True)]

    keys, lost = facts(_written(tmp_path, b"".join(members)[:-missing_bytes], "t.jsonl.gz"))

    length = sum(map(len, members)) - missing_bytes
    assert keys == ["a", "b"]
    assert lost[0] == (
        "damaged compression", None, f"cut off at byte {length} of the compressed file",
    )  # fmt: skip


def test_rubbish_behind_a_compressed_trace_is_damage(tmp_path, lines, task):
    compressed = gzip.compress(lines(task("a")))

    keys, lost = facts(_written(tmp_path, compressed + b"rubbish", "t.jsonl.gz"))

    assert keys == ["a"]
    assert [found[0] for found in lost] == ["damaged compression"]


# -- input that is refused ---------------------------------------------------------------


def refusal(path) -> str:
    """What is said of a path that cannot be opened: one line."""
    with pytest.raises((NotATrace, TraceNotFound, SchemaTooNew)) as caught:
        Trace(path)
    message = str(caught.value)
    assert "\n" not in message
    assert ascii(Path(path).name)[1:-1] in message
    return message


def test_nothing_there(tmp_path):
    assert "there is no " in refusal(tmp_path / "nowhere.jsonl")


def test_a_folder_without_a_trace(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")

    assert "no trace lies in the folder" in refusal(tmp_path)


def _png() -> bytes:
    def block(name: bytes, content: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + checksum

    size = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(range(193)) * 64)
    return (
        b"\x89PNG\r\n\x1a\n"
        + block(b"IHDR", size)
        + block(b"IDAT", pixels)
        + block(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (zstandard.compress(b""), "is empty"),
        (b"# Notes\n\nno trace\n", "no line of it is a record"),
        (b'{"level":"INFO","message":"a log of something else"}\n' * 9, "no line of it"),
        (b'{"kind":"Pod","apiVersion":"v1"}\n', "no line of it"),
        (b'{"kind":"task","key":"no time"}\n', "no line of it"),
        (_png(), "no line of it"),
        (b"root\x00\x00\xf7\x0c\x00\x00\x00d" + os.urandom(3_000_000), "no line of it"),
        (b"PAR1" + os.urandom(100_000) + b"PAR1", "no line of it"),
        (b"\0" * 1_000_000, "no line of it"),
        (b"\x28\xb5\x2f\xfd" + b"no frame at all", "is empty"),
        (b"\x1f\x8b\x08" + b"no member at all", "is empty"),
    ],
    ids=[
        "empty", "blank lines", "empty zstd", "text", "a log", "kind of something else",
        "no time", "PNG", "ROOT", "Parquet", "zeros", "no zstd", "no gzip",
    ],
)  # fmt: skip
def test_a_file_that_is_no_trace(tmp_path, held, said):
    assert said in refusal(_written(tmp_path, held))


def test_a_newer_major_version_says_how_to_upgrade(tmp_path, lines):
    newer = lines().replace(f'"{SCHEMA_VERSION}"'.encode(), b'"3.0"')

    message = refusal(_written(tmp_path, newer))

    assert "schema version 3.0" in message
    assert "pip install -U 'roast-trace[analyze]'" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path, lines):
    path = _written(tmp_path, lines())
    path.chmod(0)

    assert "Permission denied" in refusal(path)


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")

    assert "is neither a file nor a folder" in refusal(tmp_path / "pipe.jsonl")


def test_a_name_that_is_no_text(tmp_path, lines):
    path = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.jsonl"))
    path.write_bytes(lines())

    assert "is not UTF-8; rename the file" in refusal(path)


def test_a_connection_of_ones_own_can_be_filled_segment_by_segment(tmp_path, lines, task):
    with duckdb.connect() as connection:
        load.create_tables(connection)
        for number in (1, 2):
            path = _written(tmp_path, lines(task(f"a-{number}")), f"{number}.jsonl")
            identity = Identity("mine", number)
            load.load_segment(
                connection, read_segment(path), identity, load.Progress(), lambda _place: None
            )

        assert connection.sql("SELECT key, segment, trace_id FROM raw.task").fetchall() == [
            ("a-1", 1, "mine"),
            ("a-2", 2, "mine"),
        ]


def _zstd_frames(content: bytes) -> list[bytes]:
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return [compressor.compress(line) for line in content.splitlines(keepends=True)]


def _written(folder: Path, content: bytes, name: str = "trace.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path
