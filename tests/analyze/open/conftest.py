"""The keys and losses of traces, as a fixture."""

import pytest

from roast_analyze import Trace


@pytest.fixture
def keys_and_losses():
    """Return the keys of the tasks in some traces, and their losses."""

    def keys_and_losses(*names):
        with Trace(*names) as trace:
            keys = [key for (key,) in trace.rows("SELECT key FROM tasks")]
            return keys, trace.rows("SELECT reason, records, detail FROM loss")

    return keys_and_losses
