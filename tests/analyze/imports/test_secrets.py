"""Secrets of a dump are replaced, and other words are not."""

import pytest

from roast_analyze.imports.secrets import MARK, Cleaner, names_a_secret

HASH = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter2", f"password={MARK}"),
        ("{'db_password': 'a b', 'n': 1}", f"{{'db_password': {MARK}, 'n': 1}}"),
        ('"api_key": "xyz"', f'"api_key": {MARK}'),
        ("--token abc def", f"--token {MARK}"),
        ("https://me:pw@host/x", f"https://{MARK}host/x"),
        ("Authorization: Bearer abcdefgh", f"Authorization: {MARK}"),
        ("x Bearer abcdefgh y", f"x Bearer {MARK}"),
        ("id AKIAIOSFODNN7EXAMPLE.", f"id {MARK}."),
        ("eyJhbGciOiJI.eyJzdWIiOiI.abc", MARK),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n", f"a\n{MARK}"),
        ("s3cr3t: ghp_abcdefghijklmnopqrstuvwx", f"s3cr3t: {MARK}"),
    ],
)
def test_a_secret_is_replaced_and_the_rest_stays(text, expected):
    cleaner = Cleaner()

    assert cleaner.text(text) == expected
    assert cleaner.replaced >= 1


@pytest.mark.parametrize(
    "text",
    [
        f"passing-{HASH}", "('sum', 1, 2)", "ValueError('bad 1')", "tcp://10.0.0.1:8786",
        f"sk-{HASH}", "KeyError: 'a'", "handle-worker-cleanup-1.0", "monkey=1",
        "compass: north", "ProxyError: cannot connect",
    ],
)  # fmt: skip
def test_other_words_stay(text):
    cleaner = Cleaner()

    assert cleaner.text(text) == text
    assert cleaner.replaced == 0


def test_values_within_values():
    value = {"a": [{"secret": [1, 2], "b": b"xyz"}], "auth": None, 3: 2**70, "t": (1.5, True)}

    assert Cleaner().value(value) == {
        "a": [{"secret": MARK, "b": "<3 bytes>"}],
        "auth": None,
        "3": str(2**70),
        "t": [1.5, True],
    }


@pytest.mark.parametrize(
    "name", ["password", "db-passwd", "API_KEY", "aws.secret", "auth", "jwt"]
)
def test_names_of_secrets(name):
    assert names_a_secret(name)


@pytest.mark.parametrize("name", ["keys", "key", "passes", "author", "monkey", "nthreads", "t"])
def test_names_of_other_things(name):
    assert not names_a_secret(name)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "password" * 20_000, "token=" * 20_000, "'" * 100_000, "a-" * 50_000 + "token",
        "://" * 50_000, "auth " * 20_000, "auth" + " " * 100_000, "x@" * 50_000,
    ],
)  # fmt: skip
def test_a_text_that_is_made_to_be_slow_is_not(text):
    assert len(Cleaner().text(text[:100_000])) <= 200_000


def test_half_a_character_does_no_harm():
    assert Cleaner().text("a\ud800b") == "a?b"
