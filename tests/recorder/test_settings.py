"""Settings: given in the call, else in Dask's configuration; refused by name and value."""

import marshal
import re

import dask
import numpy as np
import pytest

from roast_recorder.settings import OPTIONAL_KINDS, Settings


def test_without_a_word_the_defaults_hold():
    assert Settings.from_keywords({}) == Settings()


def test_settings_travel_as_plain_values():
    settings = Settings(
        sample_interval_seconds=np.float32(0.5),
        buffer_limit_bytes=np.int64(10**6),
        kinds=["task", "transition"],
        redact_patterns=["a+"],
    )

    sent = marshal.loads(marshal.dumps(settings.as_dict()))

    assert Settings(**sent) == settings
    assert sent["sample_interval_seconds"] == 0.5
    assert type(sent["buffer_limit_bytes"]) is int
    assert sent["kinds"] == ("task", "transition")


@pytest.mark.parametrize(
    "name",
    [
        "flush_interval_seconds",
        "sample_interval_seconds",
        "buffer_limit_bytes",
        "segment_limit_bytes",
        "segment_limit_seconds",
        "retain_limit_bytes",
    ],
)
@pytest.mark.parametrize("value", [0, -1, 2**64, float("inf"), float("nan"), "1s", True, [1]])
def test_a_value_that_is_no_positive_number(name, value):
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}: a positive number")):
        Settings.from_keywords({name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("flush_interval_seconds", None, "flush_interval_seconds=None: a positive number"),
        ("compression_level", 0, "compression_level=0: a whole number from 1 to 19"),
        ("compression_level", 20, "compression_level=20: a whole number from 1 to 19"),
        ("compression_level", 6.0, r"compression_level=6\.0: a whole number from 1 to 19"),
        ("compression_level", True, "compression_level=True: a whole number from 1 to 19"),
        ("redact", "no", "redact='no': true or false"),
        ("redact", 0, "redact=0: true or false"),
        ("kinds", "task", "kinds='task': a list of texts"),
        ("kinds", [1], r"kinds=\[1\]: a list of texts"),
        ("kinds", ["task", "tasks"], "kinds: 'tasks' is not one of task, transition, "),
        ("redact_patterns", "a+", r"redact_patterns='a\+': a list of texts"),
        ("redact_patterns", ["("], r"redact_patterns: '\(' is no regular expression: missing"),
    ],
)
def test_a_value_that_cannot_be_used(name, value, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Settings.from_keywords({name: value})


@pytest.mark.parametrize("name", ["kinds", "redact_patterns"])
@pytest.mark.parametrize("value", [None, 5])
def test_a_value_that_is_no_list_at_all(name, value):
    with pytest.raises(ValueError, match=f"^{name}={value}: a list of texts"):
        Settings.from_keywords({name: value})


def test_an_iterator_is_refused_before_it_is_used_up():
    kinds = iter(["task"])

    with pytest.raises(ValueError, match=r"^kinds=<list_iterator .*: a list of texts"):
        Settings(kinds=kinds)

    assert list(kinds) == ["task"]


@pytest.mark.parametrize(
    "keywords",
    [
        {"compression_level": 19},
        {"retain_limit_bytes": None},
        {"redact": False},
        {"kinds": ()},
        {"kinds": list(OPTIONAL_KINDS)},
    ],
    ids=repr,
)
def test_a_value_that_can_be_used(keywords):
    [(name, value)] = keywords.items()

    found = Settings.from_keywords(keywords).as_dict()[name]

    assert found == (tuple(value) if isinstance(value, list) else value)


def test_a_name_that_is_no_setting():
    with pytest.raises(TypeError, match=r"'interval' is not a setting; there are: flush"):
        Settings.from_keywords({"interval": 1})


@pytest.mark.parametrize(
    ("configuration", "keywords", "expected"),
    [
        ({"flush_interval_seconds": 2}, {}, {"flush_interval_seconds": 2}),
        ({"flush-interval-seconds": 2}, {}, {"flush_interval_seconds": 2}),
        ({"redact": False}, {"redact": True}, {"redact": True}),
        ({"kinds": ["task"]}, {"redact": False}, {"kinds": ("task",), "redact": False}),
        ({"directory": "/traces"}, {}, {}),
        (None, {}, {}),
    ],
)
def test_what_dasks_configuration_holds(configuration, keywords, expected):
    with dask.config.set({"roast.recorder": configuration}):
        found = Settings.from_keywords(keywords)

    assert found == Settings(**expected)


def test_an_environment_variable(monkeypatch):
    monkeypatch.setenv("DASK_ROAST__RECORDER__COMPRESSION_LEVEL", "9")

    with dask.config.set(dask.config.collect_env()):
        assert Settings.from_keywords({}).compression_level == 9


def test_a_name_in_the_configuration_that_is_no_setting():
    with (
        dask.config.set({"roast.recorder": {"interval": 1}}),
        pytest.raises(
            ValueError, match=r"has roast\.recorder\.interval, which is not a setting"
        ),
    ):
        Settings.from_keywords({})


def test_a_value_in_the_configuration_that_cannot_be_used():
    with (
        dask.config.set({"roast.recorder": {"flush_interval_seconds": "soon"}}),
        pytest.raises(ValueError, match="flush_interval_seconds='soon'"),
    ):
        Settings.from_keywords({})


def test_the_header_does_not_tell_what_the_user_holds_secret():
    settings = Settings(redact_patterns=("CERN-[0-9]+",))

    assert settings.as_told()["redact_patterns"] == 1
    assert "CERN" not in str(settings.as_told())
