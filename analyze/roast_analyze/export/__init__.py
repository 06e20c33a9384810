"""Traces in the formats of other programs.

One module per format. ``perfetto``, ``speedscope`` and ``folded`` have a function
``write(trace, scope, file)``; ``tables`` writes Parquet files and DuckDB databases. A
:class:`.scope.Scope` selects workers, a prefix and a time range. Rows are read from DuckDB in
batches and written at once, and an older file is replaced only by a complete one
(:mod:`roast_analyze.output_paths`).
"""
