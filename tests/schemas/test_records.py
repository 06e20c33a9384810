"""Rules for the declarations of records."""

import ast
import json
import re
import sys
from pathlib import Path
from typing import get_args, is_typeddict

import duckdb
import jsonschema
import pytest
from packaging.version import Version

import roast_schemas
from roast_schemas.describe import duckdb_columns, duckdb_type, fields_of, json_schema, kinds
from roast_schemas.records import MAX_NAMES, SCHEMA_VERSION, Json
from roast_schemas.units import Unit

#: All record kinds; the last four are imported measurements.
KINDS = {
    "header", "trailer", "environment", "task", "transition", "worker_added",
    "worker_removed", "worker_sample", "span", "fine_metric", "profile", "chunk", "section",
    "worker_transition", "transfer", "event", "loss", "client_added", "client_removed",
    "graph", "computation", "spill", "import", "io_file", "io_segment", "function",
    "wanted_keys", "scheduler_sample", "host_sample", "stall", "graph_update",
    "client_activity", "cluster_size", "client_program",
}  # fmt: skip
FIELDS = [field for kind in kinds().values() for field in kind.fields]
UNITS = {
    "_seconds": Unit.SECONDS,
    "_t": Unit.EPOCH_SECONDS,
    "bytes": Unit.BYTES,
    "_bps": Unit.BYTES_PER_SECOND,
}


def _texts(python_type):
    """Return whether values of a type contain strings outside of the fields of TypedDicts."""
    parts = get_args(python_type)
    return python_type in (str, Json) or any(map(_texts, parts))


def _with_members(fields):
    for field in fields:
        yield field
        for part in (field.type, *get_args(field.type)):
            if is_typeddict(part):
                yield from _with_members(fields_of(part))


def test_exactly_the_fields_with_strings_declare_their_content():
    for field in _with_members(FIELDS):
        assert (field.content is not None) == _texts(field.type), field.name


def test_each_kind_has_a_description_and_the_two_common_fields():
    assert set(kinds()) == KINDS, "add a new kind to KINDS above"
    for kind in kinds().values():
        assert kind.meaning.endswith("."), kind.name
        first = [(field.name, field.required) for field in kind.fields[:2]]
        assert first == [("kind", True), ("t", True)], kind.name


def test_each_field_has_a_description_a_unit_and_one_type_of_duckdb():
    found = {}
    with duckdb.connect() as connection:
        for field in FIELDS:
            assert len(field.meaning) > 5, field.name
            for ending, unit in UNITS.items():
                if f"_{field.name}".endswith(ending):
                    assert field.unit == unit, field.name
            # A field name has one type and one unit in all kinds.
            same = found.setdefault(field.name, (field.type, field.unit))
            assert same == (field.type, field.unit), field.name
            connection.execute(f"SELECT NULL::{duckdb_type(field.type)}")


def test_plain_duckdb_detects_the_columns_of_all_kinds(tmp_path):
    # DuckDB samples the first lines: here one with all fields, then transitions with 8.
    names = {field.name for field in FIELDS}
    assert len(names) <= MAX_NAMES, "use a name of another kind, a group, or `value`"
    short = dict.fromkeys(
        ["kind", "t", "key", "start", "finish", "stimulus_id", "worker", "run_id"], 1
    )
    lines = [dict.fromkeys(names, 1), *[short] * 1_000]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert duckdb.read_json(str(path)).aggregate("count(stimulus_id)").fetchall() == [(1_001,)]


def test_columns_of_all_kinds():
    columns = duckdb_columns()

    assert {field.name for field in FIELDS} == set(columns)
    assert columns["startstops"] == (
        'STRUCT("action" VARCHAR, "start" DOUBLE, "stop" DOUBLE, "source" VARCHAR)[]'
    )
    assert columns["records_by_kind"] == "MAP(VARCHAR, BIGINT)"
    assert columns["payload"] == "JSON"
    with pytest.raises(TypeError, match="complex"):
        duckdb_type(complex)


def test_the_history_ends_with_the_version():
    history = (Path(roast_schemas.__file__).parent / "records.py").read_text()

    versions = re.findall(r"^\* (\d+\.\d+): ", history, re.MULTILINE)
    assert versions == sorted(versions, key=Version)
    assert versions[-1] == SCHEMA_VERSION


def test_the_json_schema_accepts_only_records():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for line, is_valid in (
        ({"kind": "task", "t": 1.5, "key": "a", "dependencies": ["b"]}, True),
        ({"kind": "task", "t": 1, "key": "a"}, True),
        ({"kind": "task", "t": 1.5}, False),
        ({"kind": "task", "t": "soon", "key": "a"}, False),
        ({"kind": "task", "t": 1.5, "key": "a", "colour": "red"}, False),
        ({"kind": "task", "t": 1.5, "key": "a", "dependencies": "b"}, False),
        ({"kind": "tusk", "t": 1.5, "key": "a"}, False),
        ({"kind": "event", "t": 1.5, "topic": "x", "payload": {"any": ["thing", 1]}}, True),
        ({"t": 1.5}, False),
    ):
        assert validator.is_valid(line) is is_valid, line


def test_only_the_standard_library_is_imported():
    allowed = {*sys.stdlib_module_names, "roast_schemas"}
    for path in Path(roast_schemas.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            assert {name.partition(".")[0] for name in names} <= allowed, path.name
