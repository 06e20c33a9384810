"""Valid values of the fields of records, as expressions in SQL.

Each field is declared with its least and largest valid number (:mod:`roast_schemas.units`).
:func:`condition` tests values that have been read with their types, which costs little.
:func:`loose_type` reads the values of a field as they are in the file, :func:`cleaned` replaces
those that are not valid by null, and :func:`invalid` lists them.
"""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, is_typeddict

from roast_schemas.describe import duckdb_type, fields_of, without_null
from roast_schemas.records import Json

if TYPE_CHECKING:
    from roast_schemas.describe import FieldDescription

#: Range of DuckDB's type for integers: a number in it needs no test.
_BIGINT = (-(2**63), 2**63 - 1)


def condition(field: FieldDescription) -> str | None:
    """Return the condition that a typed column has only valid numbers; None if it must."""
    return _condition(f'"{field.name}"', field.type, field.valid, 0)


def loose_type(python_type: Any) -> str:
    """Return the type that holds any JSON value of a field, or the text of one."""
    return "VARCHAR" if python_type is str else "JSON"


def cleaned(field: FieldDescription, *, typed: bool = False) -> str:
    """Return a column with null in place of invalid values.

    The column has the type of the field if `typed`, or else its :func:`loose_type`.
    """
    return _cleaned(f'"{field.name}"', field.type, field.valid, 0, typed=typed)


def invalid(field: FieldDescription) -> str | None:
    """Return the list of the invalid values in a column that has its :func:`loose_type`.

    Each has ``field``, such as ``startstops.stop``, and ``value``, as JSON. None is returned if
    all values are valid.
    """
    return _invalid(f'"{field.name}"', field.type, field.valid, 0, field.name)


def _condition(value: str, python_type: Any, valid: tuple[int, int], depth: int) -> str | None:
    low, high = valid
    origin, inner = get_origin(python_type), get_args(python_type)
    if origin is UnionType:
        return _condition(value, without_null(python_type), valid, depth)
    if python_type is float or (python_type is int and valid != _BIGINT):
        return f"({value} BETWEEN {low} AND {high}) IS NOT FALSE"
    if is_typeddict(python_type):
        tests = [
            test
            for part in fields_of(python_type)
            if (test := _condition(f'{value}."{part.name}"', part.type, part.valid, depth))
        ]
        return " AND ".join(tests) or None
    if origin in (list, dict):
        items = value if origin is list else f"map_values({value})"
        name = f"item_{depth}"
        test = _condition(name, inner[-1], valid, depth + 1)
        return test and (
            f"list_bool_and(list_transform({items}, lambda {name}: {test})) IS NOT FALSE"
        )
    return None


def _cleaned(
    value: str, python_type: Any, valid: tuple[int, int], depth: int, *, typed: bool
) -> str:
    low, high = valid
    origin, inner = get_origin(python_type), get_args(python_type)
    if origin is UnionType:
        return _cleaned(value, without_null(python_type), valid, depth, typed=typed)
    if python_type in (int, float):
        number = f"try_cast({value} AS {duckdb_type(python_type)})"
        return f"CASE WHEN {number} BETWEEN {low} AND {high} THEN {number} END"
    parts = _parts(value, python_type, typed=typed)
    if parts is None:
        return (
            value
            if python_type in (str, Json) or typed
            else f"try_cast({value} AS {duckdb_type(python_type)})"
        )
    if is_typeddict(python_type):
        members = ", ".join(
            f'"{part.name}": '
            + _cleaned(f'{parts}."{part.name}"', part.type, part.valid, depth, typed=typed)
            for part in fields_of(python_type)
        )
        return f"CASE WHEN {parts} IS NOT NULL THEN {{{members}}} END"
    name = f"item_{depth}"
    if origin is list:
        item = _cleaned(name, inner[0], valid, depth + 1, typed=typed)
        return f"list_transform({parts}, lambda {name}: {item})"
    item = _cleaned(f"{name}.value", inner[1], valid, depth + 1, typed=typed)
    entry = f"{{'key': {name}.key, 'value': {item}}}"
    return f"map_from_entries(list_transform(map_entries({parts}), lambda {name}: {entry}))"


def _invalid(
    value: str, python_type: Any, valid: tuple[int, int], depth: int, path: str
) -> str | None:
    origin, inner = get_origin(python_type), get_args(python_type)
    if origin is UnionType:
        return _invalid(value, without_null(python_type), valid, depth, path)
    if python_type in (str, Json):
        return None
    own = f"[{{'field': '{path}', 'value': {value}::VARCHAR}}]"
    parts = _parts(value, python_type, typed=False)
    if parts is None:
        kept, within = _cleaned(value, python_type, valid, depth, typed=False), "[]"
    elif is_typeddict(python_type):
        members = [
            found
            for part in fields_of(python_type)
            if (
                found := _invalid(
                    f'{parts}."{part.name}"',
                    part.type,
                    part.valid,
                    depth,
                    f"{path}.{part.name}",
                )
            )
        ]
        kept, within = parts, f"flatten([{', '.join(members)}])"
    else:
        items = parts if origin is list else f"map_values({parts})"
        name = f"item_{depth}"
        found = _invalid(name, inner[-1], valid, depth + 1, path)
        kept, within = parts, f"flatten(list_transform({items}, lambda {name}: {found}))"
    return (
        f"CASE WHEN {value} IS NULL THEN [] WHEN ({kept}) IS NULL THEN {own} ELSE {within} END"
    )


def _parts(value: str, python_type: Any, *, typed: bool) -> str | None:
    """Return a structure whose parts are read one by one, or None if a cast reads it."""
    origin, inner = get_origin(python_type), get_args(python_type)
    if is_typeddict(python_type):
        members = ", ".join(
            f'"{part.name}" {loose_type(part.type)}' for part in fields_of(python_type)
        )
        kind = f"STRUCT({members})"
    elif origin is list and inner[0] is not str:
        kind = f"{loose_type(inner[0])}[]"
    elif origin is dict:
        kind = f"MAP(VARCHAR, {loose_type(inner[1])})"
    else:
        return None
    return value if typed else f"try_cast({value} AS {kind})"
