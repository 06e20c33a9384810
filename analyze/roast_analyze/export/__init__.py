"""A trace in the formats of other programs.

One module a format, each with a function ``write(trace, scope, target)``. A
:class:`.scope.Scope` says which worker, prefix and stretch of time is meant. Rows come from
DuckDB a batch at a time and go to the file at once (:mod:`.rows`), and a file is in its place
only when it is whole (:mod:`.files`).
"""
