"""The commands of ``roast-analyze``, one a module.

A command's docstring is its help text. ``add_arguments(parser)`` declares what it takes,
``run(options)`` does it and gives the exit code. Whatever goes wrong is raised as a
:class:`roast_analyze.errors.TraceError`; :mod:`roast_analyze.cli` prints it.

Nothing heavy is imported before a command runs.
"""
