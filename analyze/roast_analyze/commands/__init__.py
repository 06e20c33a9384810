"""The commands of ``roast-analyze``, one per module.

The docstring of a command is its help text. ``add_arguments(parser)`` declares its arguments;
``run(options)`` runs it and returns False only for a negative result. Errors are raised as
:class:`roast_analyze.errors.TraceError`, and :mod:`roast_analyze.cli` prints them.

Heavy libraries are imported only when a command runs.
"""
