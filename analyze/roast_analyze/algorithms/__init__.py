"""Algorithms over Polars frames, independent of DuckDB."""
