"""Shared fixtures of the tests of measured chunks."""

import pytest

from roast_recorder.coffea.instrumentation import add_listener, remove_listener
from roast_recorder.coffea.measurement import current_measurement
from roast_recorder.process_state import here


class Listener(list):
    """The records that a listener received: a list of lists of (kind, fields)."""

    def of_kind(self, kind):
        """Return the fields of all records of a kind, with ``measured`` flattened."""
        found = (fields for records in self for name, fields in records if name == kind)
        return [{**fields, **fields.get("measured", {})} for fields in found]

    @property
    def chunks(self):
        return self.of_kind("chunk")

    @property
    def sections(self):
        return self.of_kind("section")


@pytest.fixture
def listener():
    """Add a listener for the test."""
    listener = Listener()
    add_listener("test", listener.append)
    yield listener
    remove_listener("test")
    assert current_measurement() is None
    assert here().measured == {}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Write the files of `coffea_runs`; return their folder."""
    from coffea_runs import write_files

    return write_files(tmp_path_factory.mktemp("files"))
