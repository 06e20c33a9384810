"""Settings: from the call, else from Dask's configuration; errors name setting and value."""

import marshal

import dask
import numpy as np

from roast_recorder.settings import OPTIONAL_KINDS, Settings

NUMBERS = [
    "buffer_limit_bytes", "retain_limit_bytes", "segment_limit_bytes", "segment_limit_seconds",
]  # fmt: skip
INTERVALS = {
    "flush_interval_seconds": 0.05,
    "sample_interval_seconds": 0.1,
    "profile_interval_seconds": 0.5,
}
NO_NUMBERS = (0, -1, 2**64, float("inf"), float("nan"), "1s", True, [1])
FLAGS = [
    "code", "measure_chunks", "own_configuration", "redact", "transfers", "worker_transitions",
]  # fmt: skip

INVALID = [
    *(
        (name, value, f"invalid {name}={value!r}: use a positive number")
        for name in NUMBERS
        for value in NO_NUMBERS
    ),
    *(
        (name, value, f"invalid {name}={value!r}: use a number of seconds, at least {least}")
        for name, least in INTERVALS.items()
        for value in (*NO_NUMBERS, None, 1e-6, least * 0.99)
    ),
    *((name, 0, f"invalid {name}=0: use true or false") for name in FLAGS),
    *((name, "no", f"invalid {name}='no': use true or false") for name in FLAGS),
    *(
        ("compression_level", value, f"invalid compression_level={value}: use a whole number")
        for value in (0, 20, 6.0, True)
    ),
    *(("label", value, f"invalid label={value!r}: use a string of 1 to 100 characters")
      for value in ("", " ", True, "x" * 101)),
    ("packages", "some", "invalid packages='some': use 'all' or 'known'"),
    *((name, value, f"invalid {name}={value!r}: use a list of strings, such as '[")
      for name in ("kinds", "redact_patterns") for value in ("task", [1], None, 5)),
    ("kinds", ["task", "tasks"], "invalid kind 'tasks': choose from task, transition, "),
    ("redact_patterns", ["("],
     "invalid redact_patterns: '(' is not a regular expression: missing"),
    ("redact_patterns", ["x{4294967296}"],
     "invalid redact_patterns: 'x{4294967296}' is not a regular expression: the repetition"),
]  # fmt: skip

VALID = [
    *INTERVALS.items(),
    ("compression_level", 1),
    ("compression_level", 19),
    ("retain_limit_bytes", None),
    ("retain_limit_bytes", 1),
    ("packages", "known"),
    ("label", "v2"),
    ("redact", False),
    ("kinds", ()),
    ("kinds", OPTIONAL_KINDS),
]


def error_of(keywords):
    try:
        Settings.from_keywords(keywords)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def test_values():
    errors = [(error_of({name: value}), message) for name, value, message in INVALID]
    assert [
        (error, message)
        for error, message in errors
        if not error.startswith(f"ValueError: {message}")
    ] == []
    for name, value in VALID:
        assert Settings.from_keywords({name: value}).as_dict()[name] == value


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
