"""The client preload of ``roast-record run``, which is passed to Dask as text.

The program may run in an environment without the recorder, where it must run all the same.
"""

import sys

try:
    from roast_recorder.client_preload import dask_setup  # noqa: F401
except ImportError as error:
    print(
        f"roast-record: nothing is recorded: {error}; install roast for {sys.executable}",
        file=sys.stderr,
    )
