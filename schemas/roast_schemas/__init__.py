"""Declarations of the trace format: each record kind once.

:mod:`roast_schemas.records` declares the kinds and :mod:`roast_schemas.units` their units.
:mod:`roast_schemas.describe` derives the JSON Schema, DuckDB's column types and the data
dictionary from them. :mod:`roast_schemas.redact` replaces secrets, and
:mod:`roast_schemas.urls` removes those of URLs in messages.
:mod:`roast_schemas.documentation` refers from messages to pages of the documentation.

The package needs only the standard library, so that it can be sent to a cluster in a pickle.
"""

from roast_schemas.records import SCHEMA_VERSION

__all__ = ["SCHEMA_VERSION"]
