"""Scrubbed files: no name of the trace is left; records and damage stay."""

import gzip
import json
import re
import sqlite3
import zlib
from functools import partial
from typing import get_args, is_typeddict

import orjson
import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.errors import TraceError
from roast_analyze.scrub.files import scrub
from roast_schemas.describe import fields_of, kinds

CANARY = "Canary"


def planted(python_type, name):
    """Return a value of a declared type with a canary in every text."""
    parts = get_args(python_type)
    if is_typeddict(python_type):
        return {f.name: planted(f.type, f.name) for f in fields_of(python_type)}
    match getattr(python_type, "__name__", ""):
        case "str":
            return f"{CANARY}{name}-{CANARY}Two/{CANARY}_x.{CANARY}"
        case "list":
            return [planted(parts[0], name)]
        case "dict":
            return {f"{CANARY}{name}": 1}
        case "Json":
            text = f"x = '{CANARY}'\n{CANARY}()"
            inner = {f"{CANARY}Name": f"{CANARY} is here", "text": text}
            return {**inner, "args": [inner, CANARY], "files": [{"text": f"Name = {CANARY}"}]}
        case "int":
            return 1
        case "float":
            return 1.5
    return None


def test_no_canary_in_any_text_of_any_field_is_left(tmp_path, write_trace):
    records = [
        {"kind": kind.name, **{f.name: planted(f.type, f.name) for f in kind.fields[1:]}}
        for kind in kinds().values()
        if kind.name not in ("header", "trailer")
    ]
    unknown = {"kind": f"{CANARY}kind", "t": 1.0, f"{CANARY}field": {f"{CANARY}a": [CANARY]}}
    trace = write_trace(*records, unknown, trace_id=CANARY)
    with trace.open("a") as file:
        file.write(f'{CANARY}\n"{CANARY}"\n{{"{CANARY}": 1}}\n')

    done = scrub(trace, tmp_path / "shared.jsonl", names=tmp_path / "names.db")

    assert (done.records, done.unreadable) == (len(records) + 3, 3)
    assert CANARY.lower() not in (tmp_path / "shared.jsonl").read_text().lower()


def test_functions_of_public_packages_are_kept(tmp_path, write_trace, task):
    bootstrap = {"name": "join", "filename": "<frozen posixpath>", "line_number": 71}
    frames = [
        {"name": name, "filename": f"/home/alice/lib/python3.12/{filename}", "line_number": 1}
        for name, filename in [
            ("to_numpy", "site-packages/awkward/highlevel.py"),
            ("parse", "json/decoder.py"),
            ("mangle", "site-packages/alice_tools/mangling.py"),
            ("retouch", "alice/retouching.py"),
            ("alice's", "site-packages/awkward/highlevel.py"),
            ("fill", "site-packages/awkward/alice.txt"),
        ]
    ]  # fmt: skip
    trace = write_trace(
        task("alice-1", prefix="highlevel"),
        {"kind": "profile", "tree": {"frames": [*frames, bootstrap]}},
    )

    scrub(trace, tmp_path / "shared.jsonl", names=tmp_path / "names.db")

    text = (tmp_path / "shared.jsonl").read_text()
    assert re.findall(r'"name":"([^"]*)"', text)[:2] == ["to_numpy", "parse"]
    assert "awkward/highlevel.py" in text
    assert "json/decoder.py" in text
    assert "<frozen posixpath>" in text
    # A kept word is kept everywhere; all others are names.
    assert '"prefix":"highlevel"' in text
    assert not re.findall(r"alice|mangl|retouch|\bfill\b", text)


def test_the_same_map_gives_the_same_bytes_and_the_same_names(tmp_path, write_trace, task):
    names = tmp_path / "names.db"
    one = write_trace(task("alice-1", prefix="alice"), name="one.jsonl")
    two = write_trace(task("bob-1", prefix="bob"), task("alice-2"), name="two.jsonl")
    first, again, other = (tmp_path / f"{name}.jsonl" for name in ("first", "again", "other"))

    scrub(one, first, names=names)
    scrub(two, other, names=names)
    scrub(one, again, names=names)

    assert first.read_bytes() == again.read_bytes()
    assert names.stat().st_mode & 0o777 == 0o600
    with Trace(first) as a, Trace(other) as b:
        [(alice,)] = a.rows("SELECT prefix FROM tasks")
        assert (f"{alice}-2",) in b.rows("SELECT key FROM tasks")

    # If a word would be left, scrubbing fails and writes nothing.
    third = write_trace(task("alice"), task("bababa"), task("bababe"), name="three.jsonl")
    files = {*tmp_path.iterdir()}
    with pytest.raises(TraceError, match="of the trace would be left in the output"):
        scrub(third, tmp_path / "third.jsonl", names=names)
    assert {*tmp_path.iterdir()} == files


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_folder_of_segments(tmp_path, lines, task, suffix):
    compress = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}[suffix]
    folder, shared = tmp_path / "alice", tmp_path / "shared"
    folder.mkdir()
    for number in (1, 2):
        content = lines(task(f"alice-{number}"), segment=number)
        (folder / f"alice-{number}.jsonl{suffix}").write_bytes(compress(content))

    scrub(folder, shared)

    assert sorted(p.name for p in shared.iterdir()) == [f"{n}.jsonl{suffix}" for n in (1, 2)]
    with Trace(shared) as trace:
        assert trace.rows("SELECT count(DISTINCT key), count(*) FROM tasks") == [(2, 2)]
        assert not trace.rows("FROM loss")


def test_damage_stays(tmp_path, write_trace, task):
    trace, shared = write_trace(task("a")), tmp_path / "shared.jsonl"
    content = trace.read_bytes()
    for damaged, reasons in [
        (content.replace(b'"a"', b'"c"'), ["changed content"]),
        (content[:-200], ["last line unreadable", "no trailer"]),
        (content.replace(b'"T"', b'"T', 2), ["no header", "unreadable lines"]),
    ]:
        trace.write_bytes(damaged)

        scrub(trace, shared)

        with Trace(shared) as opened:
            found = opened.rows("SELECT reason FROM loss ORDER BY reason")
        assert [reason for (reason,) in found] == reasons


def test_deeply_nested_values_are_unreadable(tmp_path, write_trace, task):
    """At 260 levels they cannot be written, and at 2,000 not be read recursively."""
    trace, shared = write_trace(task("a")), tmp_path / "shared.jsonl"
    header, *others = trace.read_bytes().splitlines(keepends=True)
    events = [
        b'{"kind":"event","t":1.0,"topic":"alice","payload":%b1%b}\n' % (b"[" * n, b"]" * n)
        for n in (200, 260, 2000)
    ]
    trace.write_bytes(b"".join([header, *events, *others]))

    assert scrub(trace, shared).unreadable == 2
    assert b"alice" not in shared.read_bytes()


def test_imports_and_changes_of_imports_stay(tmp_path, write_trace, task):
    line = b'{"kind":"function","t":1.0,"source":"S","name":"alice","filename":"a.py"}\n'
    about = {"kind": "import", "t": 1.0, "name": "yappi", "source": "S", "value": {}}
    about |= {"filename": "p.pstat", "records_by_kind": {"function": 1}}
    recorded = write_trace(task("a")).read_bytes()
    trace, shared = tmp_path / "imported.jsonl", tmp_path / "shared.jsonl"
    for nbytes, crc32, reasons in [
        (len(line), zlib.crc32(line), []),
        (len(line), zlib.crc32(line) ^ 2, ["changed import"]),
        (len(line) + 9, zlib.crc32(line), ["cut import"]),
    ]:
        head = orjson.dumps({**about, "nbytes": nbytes, "crc32": crc32}) + b"\n"
        trace.write_bytes(recorded + head + line)

        scrub(trace, shared)

        assert b"alice" not in shared.read_bytes()
        for path in (trace, shared):
            with Trace(path) as opened:
                assert opened.rows("SELECT reason FROM loss") == [(r,) for r in reasons]


def test_records_keep_their_lines(tmp_path, write_trace, task, run):
    trace = write_trace(task("a"), *run("a", 1.0, 2.0))

    scrub(trace, tmp_path / "shared.jsonl.gz")

    before = list(map(orjson.loads, trace.read_bytes().splitlines()))
    content = gzip.decompress((tmp_path / "shared.jsonl.gz").read_bytes())
    after = list(map(orjson.loads, content.splitlines()))
    shapes = [[(list(r), r["t"], r["kind"]) for r in records] for records in (before, after)]
    assert shapes[0] == shapes[1]


def test_the_command(analyze, tmp_path, write_trace, task, monkeypatch):
    trace, shared = write_trace(task("alice-1", prefix="alice")), tmp_path / "shared.jsonl"

    assert analyze("scrub", trace, "-o", shared, "--keep", "prefixes") == (
        0,
        f"{shared}: 3 records, 1 word replaced and none left\n",
        "",
    )
    assert "alice" in shared.read_text()
    for output, message in {
        "trace.jsonl": "is the trace itself",
        "shared": "is not the name of a trace file",
        "missing/shared.jsonl": "cannot write",
    }.items():
        code, _, err = analyze("scrub", trace, "-o", tmp_path / output)
        assert (code, message in err) == (2, True), err
    names = tmp_path / "names.jsonl"
    assert analyze("scrub", trace, "-o", shared, "--map", names)[0] == 0
    assert "is the map itself" in analyze("scrub", trace, "-o", names, "--map", names)[2]
    notes = tmp_path / "notes.jsonl"
    notes.write_text(json.dumps("hello"))
    assert "has no readable records" in analyze("scrub", notes, "-o", shared)[2]
    notes.write_text("no database")
    assert "is not a map of names" in analyze("scrub", trace, "-o", shared, "--map", notes)[2]
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0))
    with sqlite3.connect(names) as other:
        other.execute("BEGIN EXCLUSIVE")
        error = analyze("scrub", trace, "-o", shared, "--map", names)[2]
    assert error == "roast-analyze: cannot store names: database is locked\n"
