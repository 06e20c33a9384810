"""Answers that walk: polars frames in, polars frames out, and nothing of DuckDB."""
