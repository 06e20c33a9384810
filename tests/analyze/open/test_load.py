"""Records that are loaded from good and damaged files, and the losses that are reported."""

import gzip
import json
import re
from dataclasses import replace

import duckdb
import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.errors import NotATrace, SchemaTooNew
from roast_analyze.open import account, block_reader, decompress, load, tables
from roast_analyze.open.discover import Identity, read_segment
from roast_schemas import SCHEMA_VERSION
from sealing import sealed

COMPRESS = {"jsonl": bytes, "jsonl.gz": gzip.compress, "jsonl.zst": zstandard.compress}

NO_HEADER = ("no header", None, "the recorder's version and settings are unknown")
NO_TRAILER = (
    "no trailer",
    None,
    (
        "the recording did not end cleanly: it was killed, the "
        "scheduler died, its plugin was removed, or it is still running; "
        "later records are unknown"
    ),
)


@pytest.fixture
def facts(tmp_path, keys_and_losses):
    """Return the keys of the tasks in a file, and its losses."""

    def facts(content: bytes, name: str = "trace.jsonl"):
        (tmp_path / name).write_bytes(content)
        return keys_and_losses(tmp_path / name)

    return facts


@pytest.fixture
def facts_of_each(tmp_path):
    """Open several files together; return the facts of each, by its name.

    Each file contains a trace whose ID is the name of the file, or that has no header.
    """

    def facts_of_each(files: dict[str, bytes]):
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        with Trace(*(tmp_path / name for name in files)) as trace:
            keys = trace.rows("SELECT trace_id, key FROM tasks")
            losses = trace.rows("SELECT trace_id, reason, records, detail FROM loss")
        found = {}
        for name in files:
            ids = (name, name.partition(".")[0])
            of_file = [tuple(loss) for trace_id, *loss in losses if trace_id in ids]
            found[name] = ([key for trace_id, key in keys if trace_id in ids], of_file)
        return found

    return facts_of_each


@pytest.fixture
def inserted(lines, task):
    """Return a trace of the tasks a and z, with some lines between them."""

    def inserted(between: bytes, trace_id: str = "T") -> bytes:
        content = lines(task("a"), task("z"), trace_id=trace_id)
        header, first, *rest = content.splitlines(keepends=True)
        return header + first + between + b"".join(rest)

    return inserted


# -- good files --------------------------------------------------------------------------


def test_the_compression_does_not_depend_on_the_name(facts_of_each, lines, task):
    names = {f"t.{suffix}": compress for suffix, compress in COMPRESS.items()}
    names["wrong-suffix.txt"] = zstandard.compress

    found = facts_of_each(
        {name: compress(lines(task("a"), trace_id=name)) for name, compress in names.items()}
    )

    assert found == dict.fromkeys(names, (["a"], []))


def test_records_keep_their_order_across_kinds_and_blocks(monkeypatch, open_trace, task, move):
    monkeypatch.setattr(decompress, "_PLAIN_BYTES", 1000)
    monkeypatch.setattr(block_reader, "BLOCK_BYTES", 3000)
    keys = [f"a-{i * 7919 % 1000:04}" for i in range(1000)]

    trace = open_trace(
        *(r for key in keys for r in (task(key), move(1.0, key, "waiting>processing")))
    )

    assert trace.rows("SELECT key FROM tasks") == [(key,) for key in keys]
    assert trace.rows("SELECT key FROM transitions") == [(key,) for key in keys]
    assert trace.rows("SELECT * FROM loss") == []  # the checksum spans blocks


def test_only_lines_near_an_invalid_one_are_read_with_loose_types(
    monkeypatch, open_trace, task, move
):
    monkeypatch.setattr(load, "_LOOSE_BYTES", 1000)
    loose = []
    insert_staged = load._Lane.insert_staged
    monkeypatch.setattr(
        load._Lane, "insert_staged", lambda *a: loose.append(insert_staged(*a)) or loose[-1]
    )
    tasks = [task(f"k{n}", t=float(n)) for n in range(200)]
    tasks[77]["t"] = "soon"
    trace = open_trace(*tasks, *(move(float(t), "a", "waiting>processing") for t in range(99)))

    keys = [key for (key,) in trace.rows("SELECT key FROM raw.task ORDER BY rowid")]
    assert keys == [f"k{n}" for n in range(200) if n != 77]
    assert trace.rows("SELECT count(*) FROM raw.transition") == [(99,)]
    assert trace.rows("SELECT reason, records FROM loss") == [("incomplete records", 1)]
    assert 0 < sum(loose) < 20


def test_unusual_but_valid_lines(facts_of_each, lines, task):
    def content(trace_id):
        return lines(task("a", flavor="unknown field", kinds={"x": [1]}), trace_id=trace_id)

    windows = content("windows")[:-1].replace(b"\n", b"\r\n\r\n") + b"\n"
    turned = b"".join(
        json.dumps(dict(sorted(json.loads(line).items(), reverse=True))).encode() + b"\n"
        for line in content("turned").splitlines()
    )
    files = {
        "windows": sealed(windows),
        "marked": b"\xef\xbb\xbf" + content("marked"),
        "turned": sealed(turned.replace(SCHEMA_VERSION.encode(), b"2.0")),
    }

    assert facts_of_each(files) == dict.fromkeys(files, (["a"], []))


def test_a_repeated_kind_in_a_line_loads_one_record(write_trace, task):
    path = write_trace(task("a"))
    path.write_bytes(
        path.read_bytes()
        + b'{"kind":"event","t":1.0,"topic":"x","kind":"task","key":"b"}\n'
        + b'{"kind":"task","t":1.0,"key":"c"}\n'
    )

    with Trace(path) as trace:
        query = "SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM events)"
        assert trace.rows(query) == [(3,)]


def test_segments_are_loaded_into_tables_of_the_declared_types(write_trace, task):
    with duckdb.connect() as connection:
        tables.create_tables(connection)
        for number in (1, 2):
            path = write_trace(task(f"a-{number}"), name=f"{number}.jsonl")
            segment = replace(read_segment(path, path), identity=Identity("mine", number))
            load.load_segment(connection, segment, account.Progress(), lambda _: None)

        assert connection.sql("SELECT key, segment, trace_id FROM raw.task").fetchall() == [
            ("a-1", 1, "mine"),
            ("a-2", 2, "mine"),
        ]
        table = connection.sql("FROM raw.transition")
        types = dict(zip(table.columns, map(str, table.types), strict=True))
    assert (types["t"], types["run_id"]) == ("DOUBLE", "BIGINT")
    assert types["startstops"].startswith("STRUCT(")
    assert list(types)[-2:] == ["segment", "trace_id"]


# -- damaged lines -----------------------------------------------------------------------

UNREADABLE = [
    b"garbage\n",
    b"\xff\xfe\x00\n",
    b'{"kind":"task","t":1,"key":"\xff"}\n',
    b'[1,2]\n"text"\n7\nnull\n',
    b"{}\n",
    b'{"kind":null,"t":1}\n',
    b"\0\0\0\0\n",
    b'{"kind":"task","t":1,"key":"b"}{"kind":"task","t":1,"key":"c"}\n',
]
INCOMPLETE = [
    b'{"kind":"task","t":1}\n',
    b'{"kind":"task","key":"b"}\n',
    b'{"kind":"task","t":"soon","key":"b"}\n',
    b'{"kind":"task","t":1,"key":null}\n',
    b'{"kind":"task","t":1e400,"key":"b"}\n',
]


def test_damaged_lines_are_counted(facts_of_each, inserted):
    overlong = b'{"kind":"task","t":1,"key":"' + b"x" * 17_000_000 + b'"}\n'
    damage = dict(enumerate([overlong, *UNREADABLE, *INCOMPLETE]))
    found = facts_of_each({f"{n}": inserted(between, f"{n}") for n, between in damage.items()})

    assert [keys for keys, _ in found.values()] == [["a", "z"]] * len(damage)
    losses = {damage[int(n)]: losses for n, (_, losses) in found.items()}
    for garbage in UNREADABLE:
        detail = "the first is line 3, not counting blank lines"
        expected = [("unreadable lines", garbage.count(b"\n"), detail)]
        assert losses[garbage] == expected, garbage
    for record in INCOMPLETE:
        # The trailer does not count the record.
        reason, records, detail = losses[record][0]
        assert (reason, records) == ("incomplete records", 1), record
        needs, _, example = detail.partition(", and ")
        assert needs == "kind 'task' needs kind, t, key", record
        # A field that the line has with another value is named.
        assert not example or example.encode().rpartition(b" ")[2] in record, record
    assert losses[overlong] == [
        ("overlong lines", 1, "longer than 16 MiB, the limit of a record")
    ]


ODD_VALUES = [
    b"1e999999",
    b"9" * 500,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":1,"a":2}',
    b'"\\ud800"',
    b'"\\u0000"',
    b'"\xed\xa0\x80"',
    b"NaN",
    b"1}{",
]


def test_odd_values_affect_no_other_line(facts, inserted):
    between = b"".join(
        b'{"kind":"event","topic":"x","%s":%s}\n' % (field, value)
        for field in (b"payload", b"worker", b"t")
        for value in ODD_VALUES
    )

    assert facts(inserted(between))[0] == ["a", "z"]


def test_an_infinite_time_does_not_affect_the_times_of_a_trace(inserted, tmp_path):
    (tmp_path / "trace.jsonl").write_bytes(inserted(INCOMPLETE[-1]))

    with Trace(tmp_path / "trace.jsonl") as trace:
        assert trace.rows("SELECT start_t, stop_t FROM trace_info") == [(0.0, 100.0)]


def test_unknown_kinds_are_counted_by_name_up_to_a_limit(facts, lines):
    kinds = ["new"] * 3 + [f"k{i:02}" for i in range(25)]

    _, losses = facts(lines(*({"kind": kind, "t": 1.0} for kind in kinds)))

    assert losses[0] == ("unknown kind", 3, "kind 'new'")
    assert losses[-1] == ("unknown kind", 6, "6 more kinds")
    assert sum(records for _, records, _ in losses) == 28


# -- checksums ---------------------------------------------------------------------------


def test_a_changed_value_is_detected_by_the_checksum(facts_of_each, lines, task):
    changes = [
        (b'"key": "a-1"', b'"key": "a-7"'),
        (b'"t": 1.5', b'"t": 1.6'),
        (b'"reason": "recording', b'"reason": "Recording'),
        (b'"crc32":', b'"crc32":9'),
        (b'"crc32":', b'"crc3l":'),
        (b"2026.8.0", b"2026.8.1"),
    ]
    files = {}
    for number, change in enumerate(changes):
        for compress in (bytes, gzip.compress, zstandard.compress)[: 1 if number else 3]:
            name = f"{number}-{compress.__name__}-{compress.__module__}"
            content = lines(task("a-1", 1.5), trace_id=name)
            files[name] = compress(content.replace(*change))

    for name, (_, losses) in facts_of_each(files).items():
        assert [reason for reason, *_ in losses] == ["changed content"], name


# -- headers and versions ----------------------------------------------------------------


def test_a_file_without_header_is_named_after_its_file(tmp_path, facts):
    found = facts(b'{"kind":"task","t":1.0,"key":"a"}\n', "run-7.jsonl")

    assert found == (["a"], [NO_HEADER, NO_TRAILER])
    with Trace(tmp_path / "run-7.jsonl") as trace:
        assert trace.rows("SELECT trace_id FROM tasks") == [("run-7",)]


def test_other_versions_are_reported(facts_of_each, facts, lines, task):
    version = f'"{SCHEMA_VERSION}"'.encode()
    reasons = {
        SCHEMA_VERSION: [],
        "2.9": ["newer schema version"],
        "1.7": ["older schema version"],
        "one": ["unknown schema version"],
    }
    files = {
        name: sealed(lines(task("a"), trace_id=name).replace(version, f'"{name}"'.encode(), 1))
        for name in reasons
    }
    before_checksums = re.sub(rb',"crc32":[0-9]+', b"", lines(task("a"), trace_id="2.0"))
    files["2.0"] = before_checksums.replace(version, b'"2.0"')

    found = facts_of_each(files)

    assert found.pop("2.0") == (["a"], [])
    for name, (keys, losses) in found.items():
        assert (keys, [loss[0] for loss in losses]) == (["a"], reasons[name])
    with pytest.raises(SchemaTooNew, match=r"version 3.0, newer than .*: upgrade with pip in"):
        facts(lines(task("a")).replace(version, b'"3.0"'))


# -- cut files and damaged compression ---------------------------------------------------


def test_a_cut_file_loses_only_its_last_line_or_frame(facts_of_each, lines, task):
    content = lines(task("a"), task("b"), trace_id="plain")
    files = {"plain": content[: content.index(b'"key": "b"') + 5]}
    expected = {}
    for suffix in ("jsonl.zst", "jsonl.gz"):
        *first, last = lines(task("a"), task("b"), trace_id=suffix).splitlines(keepends=True)
        frames = COMPRESS[suffix](b"".join(first)) + COMPRESS[suffix](last)
        files[suffix] = frames[:-4]
        detail = f"cut off at byte {len(frames) - 4} of the compressed file"
        expected[suffix] = ("damaged compression", None, detail)

    found = facts_of_each(files)

    last = ("last line unreadable", 1, "line 3; the file was cut off there")
    assert found["plain"] == (["a"], [last, NO_TRAILER])
    for suffix, loss in expected.items():
        keys, losses = found[suffix]
        assert keys == ["a", "b"]
        assert losses[0] == loss


def test_a_file_cut_within_its_first_line_is_an_empty_trace(
    facts_of_each, lines, task, tmp_path
):
    kept = {"jsonl": [1, 60], "jsonl.zst": [1, 3, 4], "jsonl.gz": [2, 20]}
    reasons = dict.fromkeys(kept, "damaged compression") | {"jsonl": "last line unreadable"}
    files = {
        f"{suffix[-1]}{nbytes}.{suffix}": COMPRESS[suffix](lines(task("a")))[:nbytes]
        for suffix in kept
        for nbytes in kept[suffix]
    }

    for name, (keys, losses) in facts_of_each(files).items():
        assert keys == [], name
        reason = reasons[name.partition(".")[2]]
        assert [loss[0] for loss in losses] == [reason, "no header", "no trailer"], name
    with Trace(*(tmp_path / name for name in files)) as trace:
        assert trace.rows("FROM critical_path") == []


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

    assert (keys, [loss[0] for loss in losses]) == (["a"], ["damaged compression"])


# -- files that are not traces -----------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n\n", "is empty"),
        (zstandard.compress(b""), "is empty"),
        (b"\x28\xb5\x2f\xfd" + b"no frame at all", "cannot be decompressed"),
        (b"\x1f\x8b\x08" + b"no member at all", "cannot be decompressed"),
        (b"# Notes\n\nno trace\n", "contains no records"),
        (b'{"level":"INFO","message":"another log"}\n' * 9, "contains no records"),
        (b'{"kind":"Pod","apiVersion":"v1"}\n', "contains no records"),
        (b'{"kind":"task","key":"no time"}\n', "contains no records"),
        (b"\0" * 1_000_000, "contains no records"),
    ],
    ids=range(9),
)
def test_files_without_records_are_refused(facts, content, message):
    with pytest.raises(NotATrace, match=f"'.*' {message}: name a trace recorded by roast$"):
        facts(content)
