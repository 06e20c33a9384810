"""Scrubbed files: nothing is left of the trace, and the views are the same."""

import gzip
import json
from pathlib import Path
from typing import get_args, is_typeddict

import orjson
import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.scrub.files import scrub
from roast_schemas.describe import fields_of, kinds
from scrubbing import differing_views

SAMPLES = Path(__file__).parents[3] / "sample_traces"
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
            inner = {
                f"{CANARY}Name": f"{CANARY} is here",
                "text": f"x = '{CANARY}'\n{CANARY}()",
            }
            return {
                **inner,
                "args": [inner, f"{CANARY}"],
                "files": [{"text": f"Name = {CANARY}"}],
            }
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


@pytest.mark.exhaustive
def test_views_of_a_run_are_the_same(tmp_path):
    trace, shared = SAMPLES / "coffea_failures.jsonl.zst", tmp_path / "shared.jsonl.zst"

    scrub(trace, shared, names=tmp_path / "names.db")

    # All views of all samples are in tests/nightly.
    views = ["task_runs", "failures", "workers", "files", "packages"]
    assert not differing_views(trace, shared, tmp_path / "names.db", views)


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
        [(alice,)] = a.sql("SELECT prefix FROM tasks").fetchall()
        assert b.sql("SELECT key FROM tasks ORDER BY len(key)").fetchall()[-1] == (
            f"{alice}-2",
        )


def test_a_word_that_is_left_fails_and_writes_nothing(tmp_path, write_trace, task):
    names, shared = tmp_path / "names.db", tmp_path / "shared.jsonl"
    scrub(write_trace(task("alice")), tmp_path / "other.jsonl", names=names)
    trace = write_trace(task("alice"), task("bababa"), task("bababe"), name="two.jsonl")

    with pytest.raises(Exception, match="of the trace would be left in the output"):
        scrub(trace, shared, names=names)

    assert {path.name for path in tmp_path.iterdir()} == {
        "names.db", "other.jsonl", "trace.jsonl", "two.jsonl",
    }  # fmt: skip


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


@pytest.mark.parametrize(
    ("damage", "reasons"),
    [
        (lambda content: content.replace(b'"a"', b'"c"'), ["changed content"]),
        (lambda content: content[:-200], ["last line unreadable", "no trailer"]),
        (lambda content: content.replace(b'"T"', b'"T', 2), ["no header", "unreadable lines"]),
    ],
)
def test_damage_stays(tmp_path, write_trace, task, damage, reasons):
    trace, shared = write_trace(task("a")), tmp_path / "shared.jsonl"
    trace.write_bytes(damage(trace.read_bytes()))

    scrub(trace, shared)

    with Trace(shared) as opened:
        found = opened.rows("SELECT reason FROM loss ORDER BY reason")
    assert [reason for (reason,) in found] == reasons


def test_records_keep_their_lines(tmp_path, write_trace, task, run):
    trace = write_trace(task("a"), *run("a", 1.0, 2.0))

    scrub(trace, tmp_path / "shared.jsonl.gz")

    before = list(map(orjson.loads, trace.read_bytes().splitlines()))
    content = gzip.decompress((tmp_path / "shared.jsonl.gz").read_bytes())
    after = list(map(orjson.loads, content.splitlines()))
    shapes = [[(list(r), r["t"], r["kind"]) for r in records] for records in (before, after)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("trace.jsonl", "is the trace itself"),
        ("shared", "is not the name of a trace file"),
        ("missing/shared.jsonl", "cannot write"),
    ],
)
def test_outputs_that_cannot_be_written(analyze, tmp_path, write_trace, task, output, message):
    code, _, err = analyze("scrub", write_trace(task("a")), "-o", tmp_path / output)

    assert (code, message in err) == (2, True), err


def test_the_command(analyze, tmp_path, write_trace, task):
    trace, shared = write_trace(task("alice-1", prefix="alice")), tmp_path / "shared.jsonl"

    assert analyze("scrub", trace, "-o", shared, "--keep", "prefixes") == (
        0,
        f"{shared}: 3\xa0records, 1\xa0word replaced and none left\n",
        "",
    )
    assert "alice" in shared.read_text()
    notes = tmp_path / "notes.jsonl"
    notes.write_text(json.dumps("hello"))
    assert "has no readable records" in analyze("scrub", notes, "-o", shared)[2]
    notes.write_text("no database")
    assert "is not a map of names" in analyze("scrub", trace, "-o", shared, "--map", notes)[2]
