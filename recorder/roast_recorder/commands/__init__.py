"""The commands of ``roast-record``, one a module.

Each has ``add_to(commands)``, which adds a parser for its arguments. The parser's default
``run`` is a function that takes the parsed arguments and returns the exit code.
"""

SUCCESS, FAILED, INVALID_CALL = 0, 1, 2


class CallError(Exception):
    """An invalid call; the text names the value and what to do."""
