"""The commands of ``roast-record``, one a module.

Each has ``add_to(commands)``, which describes its arguments, and is run by the function
that it sets as ``run``: options in, exit code out.
"""

WELL, FAILED, WRONG_CALL = 0, 1, 2


class CallError(Exception):
    """The call cannot be carried out; the text says why and what to do."""
