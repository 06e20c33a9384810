"""Settings: from the call, else from Dask's configuration; errors name setting and value."""

import argparse
import dataclasses
import marshal

import dask
import numpy as np
import pytest

from roast_recorder.commands import CallError, add_recording_options, settings_of
from roast_recorder.settings import OPTIONAL_KINDS, Settings

LIMITS = {
    "buffer_limit_bytes": 2**16,
    "retain_limit_bytes": 2**16,
    "segment_limit_bytes": 2**12,
}
#: Shortest and longest.
SECONDS = {
    "flush_interval_seconds": (0.05, 86_400),
    "sample_interval_seconds": (0.1, 86_400),
    "host_interval_seconds": (1, 86_400),
    "profile_interval_seconds": (0.5, 86_400),
    "segment_limit_seconds": (1, 31_536_000),
}
FLAGS = [
    "code", "measure_chunks", "own_configuration", "redact", "transfers", "worker_transitions",
]  # fmt: skip
NO_NUMBERS = (
    0, -1, 2**64, float("inf"), float("nan"), True, False, [1], {}, b"1", "soon", "", "64 MiBs",
)  # fmt: skip

#: Setting, values, and what the message requires.
WRONG = [
    *(
        (name, (*NO_NUMBERS, 1.5, least - 1, 2**50 + 1, "1.5", "10 B", "-64 MiB", "nan", 1e-6),
         "a whole number of bytes, such as 67108864 or '64 MiB', from")
        for name, least in LIMITS.items()
    ),
    *(
        (name, (*NO_NUMBERS, None, least * 0.99, most * 1.01, 1e-6, "1", "1s"),
         f"a number of seconds from {least:g} to {most:,}")
        for name, (least, most) in SECONDS.items()
    ),
    *((name, (0, 1, "no", "1", None, 1.0, [], ()), "true or false") for name in FLAGS),
    ("compression_level", (0, 20, -1, 6.0, True, None, "six", [6]),
     "a whole number from 1 to 19"),
    ("label", ("", " ", True, 5, 5.0, "x" * 101, ["a"], b"a"),
     "a string of 1 to 100 characters"),
    ("packages", ("some", "", None, 1, ["all"], True), "'all' or 'known'"),
    ("kinds", ("task", [1], None, 5, (), [], {"task": 1}, ["task", 1], ["tasks"], ["transfer"]),
     "a list of kinds, such as '[\"task\", \"transition\"]'"),
    ("redact_patterns", ("a", [1], None, 5, ["("], ["x{4294967296}"], [""], ["a*"], {"a": 1}),
     "a list of regular expressions, such as '[\"a+\", \"b\"]'"),
]  # fmt: skip

VALID = [
    *((name, value) for name, values in SECONDS.items() for value in values),
    *LIMITS.items(),
    ("compression_level", 1),
    ("compression_level", 19),
    ("retain_limit_bytes", None),
    ("packages", "known"),
    ("label", "v2"),
    ("redact", False),
    ("kinds", ("task",)),
    ("kinds", OPTIONAL_KINDS),
]


def error_of(keywords):
    try:
        Settings.from_keywords(keywords)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def error_of_configuration(settings):
    with dask.config.set({"roast.recorder": settings}):
        return error_of({})


def error_of_environment(settings):
    variables = {
        f"DASK_ROAST__RECORDER__{name.upper()}": as_text(value)
        for name, value in settings.items()
    }
    return error_of_configuration(dask.config.collect_env(variables)["roast"]["recorder"])


def error_of_command(settings):
    parser = argparse.ArgumentParser()
    add_recording_options(parser)
    texts = [f"{name}={as_text(value)}" for name, value in settings.items()]
    try:
        settings_of(parser.parse_args([f"--set={text}" for text in texts]))
    except CallError as error:
        return f"ValueError: {error}"
    return "no error"


def as_text(value):
    return value if isinstance(value, str) else repr(value)


#: Values that are text in a variable or an argument, and are read as valid ones.
READ_AS_VALID = [
    ("label", 5),
    ("label", 5.0),
    ("label", True),
    ("label", ["a"]),
    ("label", b"a"),
]


@pytest.mark.parametrize(
    ("error_of", "texts"),
    [
        (error_of, False),
        (error_of_configuration, False),
        (error_of_environment, True),
        (error_of_command, True),
    ],
)
def test_wrong_values(error_of, texts):
    tested, unlike = set(), []
    for name, values, need in WRONG:
        tested.add(name)
        for value in values:
            error = error_of({name: value})
            if error.startswith(f"ValueError: invalid {name}=") and f": use {need}" in error:
                assert "\n" not in error
                continue
            is_text = name == "label" and type(value) in (int, float)
            if (is_text and error_of is not globals()["error_of"]) or (
                texts and ((name, value) in READ_AS_VALID or value == "1")
            ):
                continue
            unlike.append((name, value, error))

    assert unlike == []
    assert tested == {field.name for field in dataclasses.fields(Settings)}


def test_messages_name_the_value_and_the_remedy():
    kinds = """use a list of kinds, such as '["task", "transition"]'"""
    for settings, message in [
        (
            {"buffer_limit_bytes": 1.5},
            (
                "buffer_limit_bytes=1.5: use a whole number of bytes, such as 67108864 or "
                "'64 MiB', from 64 KiB to 1 PiB"
            ),
        ),
        (
            {"kinds": ["task", "tasks"]},
            f"kinds=['task', 'tasks']: {kinds} (unknown kind 'tasks': did you mean 'task'?)",
        ),
        (
            {"kinds": ["transfer"]},
            f"kinds=['transfer']: {kinds} ('transfer' is recorded with transfers=true)",
        ),
        (
            {"redact_patterns": ["a*"]},
            (
                "redact_patterns=['a*']: use a list of regular expressions, such as "
                """'["a+", "b"]' ('a*' matches an empty text)"""
            ),
        ),
        (
            {"label": "x" * 10_000},
            f"label='{'x' * 98}…: use a string of 1 to 100 characters",
        ),
    ]:
        assert error_of(settings) == f"ValueError: invalid {message}"


def test_valid_values():
    for name, value in VALID:
        assert Settings.from_keywords({name: value}).as_dict()[name] == value
    sizes = Settings(
        buffer_limit_bytes="8 MiB", retain_limit_bytes=64e9, segment_limit_bytes="1e6"
    )
    assert (sizes.buffer_limit_bytes, sizes.retain_limit_bytes) == (2**23, 64 * 10**9)
    assert sizes.segment_limit_bytes == 10**6
    assert error_of_command({"label": "1.10"}) == "no error"
    for ways in (error_of_configuration, error_of_environment):
        assert ways({"label": 5, "retain_limit_bytes": "50 GB", "redact": False}) == "no error"


def test_settings_are_sent_as_plain_values():
    settings = Settings(
        sample_interval_seconds=np.float32(0.5),
        buffer_limit_bytes=np.int64(10**6),
        kinds=["task", "transition"],
        redact_patterns={"a+"},
    )

    sent = marshal.loads(marshal.dumps(settings.as_dict()))

    assert Settings(**sent) == settings
    assert sent["sample_interval_seconds"] == 0.5
    assert type(sent["buffer_limit_bytes"]) is int
    assert (sent["kinds"], sent["redact_patterns"]) == (("task", "transition"), ("a+",))


def test_dasks_configuration_is_used_unless_the_call_sets_a_value(monkeypatch):
    for configuration, keywords, expected in [
        (None, {}, {}),
        ({"flush_interval_seconds": 2}, {}, {"flush_interval_seconds": 2}),
        ({"flush-interval-seconds": 2}, {}, {"flush_interval_seconds": 2}),
        ({"redact": False}, {"redact": True}, {"redact": True}),
        ({"kinds": ["task"]}, {"redact": False}, {"kinds": ("task",), "redact": False}),
        ({"directory": "/traces"}, {}, {}),
    ]:
        with dask.config.set({"roast.recorder": configuration}):
            assert Settings.from_keywords(keywords) == Settings(**expected)

    monkeypatch.setenv("DASK_ROAST__RECORDER__COMPRESSION_LEVEL", "9")
    monkeypatch.setenv("DASK_ROAST__RECORDER__LABEL", "42")  # a number for Dask
    with dask.config.set(dask.config.collect_env()):
        assert Settings.from_keywords({}) == Settings(compression_level=9, label="42")


def test_unknown_names_and_invalid_configuration():
    error = error_of({"interval": 1})
    assert error.startswith(
        "TypeError: unknown setting 'interval': choose from label, flush_interval"
    )
    assert error_of({"flush_intervals_second": 1}) == (
        "TypeError: unknown setting 'flush_intervals_second': "
        "did you mean 'flush_interval_seconds'?"
    )
    for configuration, message in [
        (
            {"interval": 1},
            "unknown setting roast.recorder.interval in Dask's configuration: choose from ",
        ),
        ({"flush_interval_seconds": "soon"}, "invalid flush_interval_seconds='soon'"),
        ("yes", "invalid roast.recorder='yes' in Dask's configuration: use names and values"),
    ]:
        with dask.config.set({"roast.recorder": configuration}):
            assert error_of({}).startswith(f"ValueError: {message}")


def test_the_header_does_not_contain_the_users_secret_patterns():
    settings = Settings(redact_patterns=("CERN-[0-9]+",))

    assert settings.for_header() == {**settings.as_dict(), "redact_patterns": 1}
