"""URLs of traces: what is shown of them, and names of local files."""

import pytest

from roast_analyze.open.names import file_name, is_url, local_path, safe_name
from roast_schemas.urls import without_secrets

SHOWN = {
    "s3://bucket/run/t.jsonl": "s3://bucket/run/t.jsonl",
    "https://h:8443/t.jsonl?X-Amz-Signature=SECRET&x=1": "https://h:8443/t.jsonl?…",
    "https://h/t.jsonl?SECRET": "https://h/t.jsonl?…",
    "https://h/t.jsonl#SECRET": "https://h/t.jsonl?…",
    "https://SECRET@h/t.jsonl": "https://h/t.jsonl",
    "https://me:SECRET@h:1/t.jsonl": "https://h:1/t.jsonl",
    # A password need not be quoted as it should be.
    "https://me:SEC/RET@h/t.jsonl": "https://h/t.jsonl",
    "https://me:SEC?RET@h/t.jsonl": "https://h/t.jsonl",
    "https://me:SEC#RE@T@h/t.jsonl": "https://h/t.jsonl",
    "s3://AKIA:SEC/RET@bucket/t.jsonl": "s3://bucket/t.jsonl",
    "root://me@h:1094//t.jsonl?authz=SECRET": "root://h:1094//t.jsonl?…",
    # Neither of these is a user.
    "https://h:1/me@site/t.jsonl": "https://h:1/me@site/t.jsonl",
    "https://[::1]:80/me@site/t": "https://[::1]:80/me@site/t",
}


@pytest.mark.parametrize("url", SHOWN)
def test_a_url_is_shown_without_credentials(url):
    assert without_secrets(url) == SHOWN[url]


def test_urls_are_told_from_paths_and_queries():
    assert all(map(is_url, SHOWN))
    for word in (
        "t.jsonl",
        "C:/t.jsonl",
        "a/b://c",
        "s3:/b/t",
        "s3://",
        "SELECT 'https://h/t'",
    ):
        assert not is_url(word)


def test_a_file_url_is_a_path():
    assert str(local_path("file:///a%20b/t.jsonl")) == "/a b/t.jsonl"
    assert str(local_path("file://localhost/t.jsonl")) == "/t.jsonl"


NAMES = {
    "s3://bucket/run/t.jsonl.zst": "t.jsonl.zst",
    "https://h/t.jsonl?file=../../x": "t.jsonl",
    "s3://bucket/run-3/": "run-3",
    "s3://bucket": "bucket",
    "https://me:SECRET@h/": "h",
    "https://h/..%2F..%2Fx.jsonl": "_.._x-917674fd.jsonl",
}


@pytest.mark.parametrize("url", NAMES)
def test_the_last_part_of_a_url_names_the_copy(url):
    assert file_name(url) == NAMES[url]


@pytest.mark.parametrize(
    "name",
    ["..", "", "-rf", ".t.jsonl", "a b", "a/b", "a\\b", "*.jsonl", "[x]", "$(x)", "a\x1b[1m",
     "a\u202eb", "\udc80", "x" * 300, "\u00e9" * 200, "a\nb.jsonl.zst"],
)  # fmt: skip
def test_a_hostile_name_is_a_safe_file_name(name, tmp_path):
    safe = safe_name(name)

    (tmp_path / safe).touch()
    assert [path.name for path in tmp_path.iterdir()] == [safe]
    assert safe.isprintable()
    assert not set(safe) & set(" *?[]$()/\\")
    assert safe[0] not in ".-"
    # The suffix stays, and no other name has the same result.
    assert safe.endswith(".jsonl.zst") == name.endswith(".jsonl.zst")
    assert safe != safe_name(f"{name} ")


def test_a_plain_name_stays():
    assert safe_name("roast-20260831-140501-a1b2c3.jsonl.zst") == (
        "roast-20260831-140501-a1b2c3.jsonl.zst"
    )
    assert safe_name("größe=3+x@y_2.jsonl") == "größe=3+x@y_2.jsonl"
