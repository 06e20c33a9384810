"""Descriptions of the record kinds, read from :mod:`roast_schemas.records`.

The JSON Schema of a line, the column types with which DuckDB reads a trace, and the data
dictionary are all derived from one description of each kind, :class:`Kind`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints, is_typeddict

from roast_schemas.records import KINDS, SCHEMA_VERSION, Json, Record
from roast_schemas.units import Content, Field, Unit

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_DUCKDB_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", Json: "JSON"}


@dataclass(frozen=True)
class FieldDescription:
    """One field of a kind."""

    name: str
    #: ``str``, ``int``, ``float``, ``bool``, ``Json``, or a list, dict or TypedDict of them; in
    #: a list, also ``X | None``.
    type: Any
    unit: Unit
    meaning: str
    #: Whether every record of the kind has it.
    required: bool
    #: Content of its texts; None if it has no texts. Members of a TypedDict have their own.
    content: Content | None
    #: Least and largest valid value of its numbers, if it has any.
    valid: tuple[int, int]


@dataclass(frozen=True)
class Kind:
    """One record kind: its name, the meaning of its records, and its fields."""

    name: str
    meaning: str
    fields: tuple[FieldDescription, ...]


@cache
def kinds() -> dict[str, Kind]:
    """Return every record kind by name, in the order of the data dictionary."""
    return {
        name: Kind(name, inspect.getdoc(record) or "", fields_of(record))
        for name, record in KINDS.items()
    }


def duckdb_type(python_type: Any) -> str:
    """Return the DuckDB type in which values of a declared type are read.

    For example ``STRUCT("action" VARCHAR, "start" DOUBLE)[]``. Raises TypeError if the type
    has no equivalent in DuckDB.
    """
    origin, inner = get_origin(python_type), get_args(python_type)
    if origin is UnionType:
        return duckdb_type(without_null(python_type))
    if python_type in _DUCKDB_TYPES:
        return _DUCKDB_TYPES[python_type]
    if origin is list:
        return duckdb_type(inner[0]) + "[]"
    if origin is dict:
        return f"MAP({duckdb_type(inner[0])}, {duckdb_type(inner[1])})"
    if is_typeddict(python_type):
        members = (f'"{f.name}" {duckdb_type(f.type)}' for f in fields_of(python_type))
        return f"STRUCT({', '.join(members)})"
    raise TypeError(f"a record field of type {python_type!r} has no DuckDB type")


@cache
def duckdb_columns() -> dict[str, str]:
    """Return the DuckDB type of every field by name. It is the same in all kinds."""
    fields = (field for kind in kinds().values() for field in kind.fields)
    return {field.name: duckdb_type(field.type) for field in fields}


def json_schema() -> dict[str, Any]:
    """Build the JSON Schema (draft 2020-12) of one line of a trace."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of a roast trace, schema version {SCHEMA_VERSION}",
        "type": "object",
        "required": ["kind", "t"],
        "properties": {"kind": {"enum": list(kinds())}},
        "oneOf": [
            {
                "title": kind.name,
                "description": kind.meaning,
                "required": [field.name for field in kind.fields if field.required],
                **_object_schema(kind.fields, {"kind": {"const": kind.name}}),
            }
            for kind in kinds().values()
        ],
    }


@cache
def fields_of(record: type) -> tuple[FieldDescription, ...]:
    """Return the fields of a record, or of a structure in one."""
    fields = []
    for name, hint in get_type_hints(record, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            raise TypeError(f"record field {name!r} is declared without a Field(...)")
        # Python flattens Annotated[Annotated[X, a], b]; the last marker takes precedence.
        python_type, *markers = get_args(hint)
        marker = next(m for m in reversed(markers) if isinstance(m, Field))
        fields.append(FieldDescription(name, python_type, **vars(marker)))
    return tuple(fields)


@cache
def number_fields(kind: str) -> dict[str, FieldDescription]:
    """Return the fields that are numbers by name; of an unknown kind, those of all kinds."""
    fields = kinds()[kind].fields if kind in kinds() else fields_of(Record)
    return {field.name: field for field in fields if field.type in (int, float)}


def is_valid(value: object, valid: tuple[int, int]) -> bool:
    """Return whether a value is a number from the least to the largest valid one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return valid[0] <= value <= valid[1]


def _object_schema(
    fields: Iterable[FieldDescription], known: dict[str, Any] | None = None
) -> dict[str, Any]:
    properties = {}
    for field in fields:
        schema = _type_schema(field.type, field.valid)
        if "type" in schema and not field.required:
            schema["type"] = [schema["type"], "null"]
        unit = f" [{field.unit}]" if field.unit else ""
        properties[field.name] = {**schema, "description": field.meaning + unit}
    return {"properties": properties | (known or {}), "additionalProperties": False}


def _type_schema(python_type: Any, valid: tuple[int, int]) -> dict[str, Any]:
    origin, inner = get_origin(python_type), get_args(python_type)
    if python_type is Json:
        return {}
    if origin is UnionType:
        schema = _type_schema(without_null(python_type), valid)
        return {**schema, "type": [schema["type"], "null"]}
    if python_type in (int, float):
        minimum, maximum = valid
        return {"type": _JSON_TYPES[python_type], "minimum": minimum, "maximum": maximum}
    if python_type in _JSON_TYPES:
        return {"type": _JSON_TYPES[python_type]}
    if origin is list:
        return {"type": "array", "items": _type_schema(inner[0], valid)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(inner[1], valid)}
    return {"type": "object", **_object_schema(fields_of(python_type))}


def without_null(union: Any) -> Any:
    """Return X of ``X | None``."""
    return next(part for part in get_args(union) if part is not NoneType)
