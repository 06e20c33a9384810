"""Rules for the declarations of records."""

import ast
import json
import sys
from pathlib import Path

import duckdb
import jsonschema
import pytest

import roast_schemas
from roast_schemas.describe import duckdb_columns, duckdb_type, json_schema, kinds
from roast_schemas.records import MAX_NAMES, SCHEMA_VERSION
from roast_schemas.units import Unit

#: All record kinds.
KINDS = {
    "header", "trailer", "environment", "task", "transition", "worker_added",
    "worker_removed", "worker_sample", "span", "fine_metric", "profile", "chunk", "section",
    "worker_transition", "transfer", "event", "loss",
    "client_added", "client_removed",
    "graph", "computation",
    "spill",
    # imported measurements
    "import", "io_file", "io_segment", "function",
}  # fmt: skip


def test_all_kinds_are_declared():
    assert set(kinds()) == KINDS


FIELDS = [field for kind in kinds().values() for field in kind.fields]


def test_each_kind_has_a_description_and_the_two_common_fields():
    wrong = [
        kind.name
        for kind in kinds().values()
        if not kind.meaning.endswith(".")
        or [(field.name, field.required) for field in kind.fields[:2]]
        != [("kind", True), ("t", True)]
    ]

    assert wrong == []


def test_each_field_has_a_description_and_a_type_of_duckdb():
    assert [field.name for field in FIELDS if len(field.meaning) <= 5] == []
    with duckdb.connect() as connection:
        for field in FIELDS:
            connection.execute(f"SELECT NULL::{duckdb_type(field.type)}")


def test_a_name_has_one_type_and_one_unit_in_all_kinds():
    found = {}
    for field in FIELDS:
        found.setdefault(field.name, set()).add((str(field.type), field.unit))

    assert {name: types for name, types in found.items() if len(types) > 1} == {}


def test_names_that_end_in_a_unit_have_it():
    units = {
        "_seconds": Unit.SECONDS,
        "_t": Unit.EPOCH_SECONDS,
        "bytes": Unit.BYTES,
        "_bps": Unit.BYTES_PER_SECOND,
    }
    wrong = [
        field.name
        for field in FIELDS
        for ending, unit in units.items()
        if f"_{field.name}".endswith(ending) and field.unit != unit
    ]

    assert wrong == []


def test_plain_duckdb_detects_the_columns_of_all_kinds(tmp_path):
    # DuckDB samples the first lines. A transition has 8 fields, the sample has all fields.
    names = [field.name for kind in kinds().values() for field in kind.fields]
    short = dict.fromkeys(
        ["kind", "t", "key", "start", "finish", "stimulus_id", "worker", "run_id"], 1
    )
    lines = [dict.fromkeys(names, 1), *[short] * 1_000]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert duckdb.read_json(str(path)).aggregate("count(stimulus_id)").fetchall() == [(1_001,)]
    assert len(set(names)) <= MAX_NAMES


def test_columns_of_all_kinds():
    columns = duckdb_columns()

    assert {field.name for kind in kinds().values() for field in kind.fields} == set(columns)
    assert columns["startstops"] == (
        'STRUCT("action" VARCHAR, "start" DOUBLE, "stop" DOUBLE, "source" VARCHAR)[]'
    )
    assert columns["records_by_kind"] == "MAP(VARCHAR, BIGINT)"
    assert columns["payload"] == "JSON"


def test_a_type_without_duckdb_type_is_an_error():
    with pytest.raises(TypeError, match="complex"):
        duckdb_type(complex)


def test_the_history_ends_with_the_version():
    history = (Path(roast_schemas.__file__).parent / "records.py").read_text()

    assert f"* {SCHEMA_VERSION}: " in history
    assert history.count("* ", 0, history.index(f"* {SCHEMA_VERSION}: ")) > 0


VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def test_the_json_schema_is_valid():
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize(
    ("line", "valid"),
    [
        ({"kind": "task", "t": 1.5, "key": "a", "dependencies": ["b"]}, True),
        ({"kind": "task", "t": 1, "key": "a"}, True),
        ({"kind": "task", "t": 1.5}, False),
        ({"kind": "task", "t": "soon", "key": "a"}, False),
        ({"kind": "task", "t": 1.5, "key": "a", "colour": "red"}, False),
        ({"kind": "task", "t": 1.5, "key": "a", "dependencies": "b"}, False),
        ({"kind": "tusk", "t": 1.5, "key": "a"}, False),
        ({"kind": "event", "t": 1.5, "topic": "x", "payload": {"any": ["thing", 1]}}, True),
        ({"t": 1.5}, False),
    ],
)
def test_the_json_schema_accepts_only_records(line, valid):
    assert VALIDATOR.is_valid(line) is valid


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
