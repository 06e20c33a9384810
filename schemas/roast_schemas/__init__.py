"""What a trace is: every record kind, declared once.

:mod:`roast_schemas.records` declares the kinds, :mod:`roast_schemas.units` the units
they are measured in, and :mod:`roast_schemas.describe` is the only place that looks
into the declarations: the JSON Schema, the column types that DuckDB reads a trace with,
and the data dictionary all come from there.

Nothing here needs more than the standard library, so that the package can travel to a
cluster inside a pickle.
"""

from roast_schemas.records import SCHEMA_VERSION

__all__ = ["SCHEMA_VERSION"]
