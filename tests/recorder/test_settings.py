"""Settings: from the call, else from Dask's configuration; errors name setting and value."""

import marshal

import dask
import numpy as np
import pytest

from roast_recorder.settings import OPTIONAL_KINDS, Settings

NUMBERS = [
    "flush_interval_seconds",
    "sample_interval_seconds",
    "profile_interval_seconds",
    "buffer_limit_bytes",
    "segment_limit_bytes",
    "segment_limit_seconds",
    "retain_limit_bytes",
]
FLAGS = [
    "measure_chunks",
    "transfers",
    "worker_transitions",
    "code",
    "own_configuration",
    "redact",
]

INVALID = [
    *(
        (name, value, f"invalid {name}={value!r}: use a positive number")
        for name in NUMBERS
        for value in (0, -1, 2**64, float("inf"), float("nan"), "1s", True, [1])
    ),
    ("flush_interval_seconds", None, "invalid flush_interval_seconds=None: use a positive"),
    *((name, 0, f"invalid {name}=0: use true or false") for name in FLAGS),
    *((name, "no", f"invalid {name}='no': use true or false") for name in FLAGS),
    *(
        ("compression_level", value, f"invalid compression_level={value}: use a whole number")
        for value in (0, 20, 6.0, True)
    ),
    ("packages", "some", "invalid packages='some': use 'all' or 'known'"),
    *((name, value, f"invalid {name}={value!r}: use a list of texts")
      for name in ("kinds", "redact_patterns") for value in ("task", [1], None, 5)),
    ("kinds", ["task", "tasks"], "invalid kind 'tasks': use some of task, transition, "),
    ("redact_patterns", ["("],
     "invalid redact_patterns: '(' is no regular expression: missing"),
]  # fmt: skip

VALID = [
    ("flush_interval_seconds", 1e-3),
    ("compression_level", 1),
    ("compression_level", 19),
    ("retain_limit_bytes", None),
    ("retain_limit_bytes", 1),
    ("packages", "known"),
    ("redact", False),
    ("kinds", ()),
    ("kinds", OPTIONAL_KINDS),
]


def test_values():
    failures = []
    for name, value, message in INVALID:
        try:
            Settings.from_keywords({name: value})
        except ValueError as error:
            if not str(error).startswith(message):
                failures.append((name, value, str(error)))
        else:
            failures.append((name, value))
    failures += [
        (name, value)
        for name, value in VALID
        if Settings.from_keywords({name: value}).as_dict()[name] != value
    ]
    assert failures == []


def test_settings_travel_as_plain_values():
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


def test_an_iterator_is_refused_before_it_is_used_up():
    kinds = iter(["task"])

    with pytest.raises(ValueError, match=r"^invalid kinds=<list_iterator .*: use a list"):
        Settings(kinds=kinds)

    assert list(kinds) == ["task"]


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
    with dask.config.set(dask.config.collect_env()):
        assert Settings.from_keywords({}) == Settings(compression_level=9)


def test_unknown_names():
    with pytest.raises(TypeError, match=r"^unknown setting 'interval': use some of flush_int"):
        Settings.from_keywords({"interval": 1})
    for configuration, message in [
        (
            {"interval": 1},
            r"^unknown setting roast\.recorder\.interval in Dask's config.*flush",
        ),
        ({"flush_interval_seconds": "soon"}, "^invalid flush_interval_seconds='soon'"),
        (
            "yes",
            r"^invalid roast\.recorder='yes' in Dask's configuration: use names and values",
        ),
    ]:
        with (
            dask.config.set({"roast.recorder": configuration}),
            pytest.raises(ValueError, match=message),
        ):
            Settings.from_keywords({})


def test_the_header_does_not_contain_the_users_secret_patterns():
    settings = Settings(redact_patterns=("CERN-[0-9]+",))

    assert settings.for_header() == {**settings.as_dict(), "redact_patterns": 1}
