"""A store of many runs: Delta Lake tables that DuckDB, Polars, Spark and Trino can read.

Data flows in one direction: :mod:`~roast_analyze.store.conversion` writes the rows of traces
to Parquet files, :mod:`~roast_analyze.store.delta` commits these files to tables, and
:mod:`~roast_analyze.store.session` opens the tables with the views of a trace.

A trace changes atomically: each time it is added, its rows get a new number, ``addition``, in
all tables. The table ``runs``, with one row per trace, is committed last. Rows of an addition
that is not in ``runs`` are not part of the store.
"""
