"""Schedulers and workers that lack the recorder get its code with the plugin."""

import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

import roast_recorder
from roast_recorder.pickling import dumps_by_value, pickled_worker_plugin
from roast_recorder.scheduler import health
from roast_recorder.scheduler.plugin import RecorderPlugin
from roast_recorder.settings import Settings

#: Unpickles, and prints the files of the recorder's functions.
UNPICKLE = """
import gc, pickle, sys, types
for package in ("roast_recorder", "roast_schemas"):
    sys.modules[package] = None
pickle.load(sys.stdin.buffer)
for function in gc.get_objects():
    if isinstance(function, types.FunctionType):
        if (function.__module__ or "").startswith("roast_"):
            print(function.__code__.co_filename)
"""


@pytest.mark.parametrize("pickled", ["worker", "scheduler"])
def test_functions_keep_their_file_names(pickled):
    plugin = pickled_worker_plugin("a", Settings())
    if pickled == "scheduler":
        plugin = dumps_by_value(RecorderPlugin("a", None, Settings().as_dict(), plugin))

    printed = subprocess.run(
        [sys.executable, "-c", UNPICKLE], input=plugin, capture_output=True, check=True
    ).stdout.decode()

    # Profiles name functions by file: cloudpickle 3.1.3 would replace it by `<dynamic-code>`.
    files = set(printed.splitlines())
    folder = Path(roast_recorder.__path__[0])
    assert "<dynamic-code>" not in files
    assert str(folder / pickled / "plugin.py") in files


def test_the_recordings_of_this_process_are_not_pickled():
    """A scheduler in the process of the client can record itself and be recorded."""
    recording = threading.Lock()  # as a recording, it cannot be pickled
    own = partial(dict, recording=recording)
    health.register(own)
    try:
        plugin = RecorderPlugin("a", None, Settings().as_dict(), b"")
        pickled = dumps_by_value(plugin)
    finally:
        health.unregister(own)

    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).name)"
    printed = subprocess.run(
        [sys.executable, "-c", code], input=pickled, capture_output=True, check=True
    ).stdout.decode()
    assert printed.strip() == plugin.name


#: Unpickles, and uses the settings of the same process.
CONFIGURE = """
import pickle, sys
from roast_recorder.settings import Settings
pickle.load(sys.stdin.buffer)
print(Settings.from_keywords({"label": "a run"}).label)
try:
    Settings.from_keywords({"flush_interval_seconds": 0})
except ValueError as error:
    print(error)
"""


def test_settings_after_a_plugin_was_unpickled_in_the_same_process():
    """By value, which an older cloudpickle does into the same class."""
    plugin = dumps_by_value(RecorderPlugin("a", None, Settings().as_dict(), b""))

    printed = subprocess.run(
        [sys.executable, "-c", CONFIGURE], input=plugin, capture_output=True, check=True
    ).stdout.decode()

    label, error = printed.splitlines()
    assert label == "a run"
    assert error.startswith("invalid flush_interval_seconds=0: use a number of seconds")
