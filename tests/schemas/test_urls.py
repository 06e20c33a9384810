"""URLs in messages: secrets are removed from every form, and nothing else."""

import re
from pathlib import Path

import pytest

from roast_schemas.urls import is_like_url, safe_message

#: Messages about what a user has typed, and what is shown.
SHOWN = {
    "'http://u:S3CRET@127.0.0.1:1/x?sig=S3CRET' does not exist": (
        "'http://127.0.0.1:1/x?…' does not exist"
    ),
    # Mistyped, and as a pathlib.Path.
    "'http:/u:S3CRET@h/x?t=S3CRET': no": "'http:/h/x?…': no",
    "'http:///u:S3CRET@h/x': no": "'http:///h/x': no",
    "'https//u:S3CRET@h/x': no": "'https//h/x': no",
    "'https/u:S3CRET@h/x': no": "'https/h/x': no",
    "'https/h/x?X-Amz-Signature=S3CRET'": "'https/h/x?…'",
    "'https:u:S3CRET@h/x': no": "'https:h/x': no",
    "'HTTPS:/u:S3CRET@h/x': no": "'HTTPS:/h/x': no",
    "'//u:S3CRET@h/x': no": "'//h/x': no",
    "'u:S3CRET@h/x': no": "'h/x': no",
    "'s3:/AKIA:S3C/RET@b/x': no": "'s3:/b/x': no",
    # In other quotes, with a quote or a space in the password, and without quotes.
    '"http://u:S3C\'RET@h/x": no': '"http://h/x": no',
    "'http://u:S3C RET@h/x': no": "'http://h/x': no",
    r"'http://u:S3C\'RET\\@h/x': no": "'http://h/x': no",
    "http://u:S3CRET@h/x: no": "http://h/x: no",
    "'a' and 'b', https//h/x?S3CRET": "'a' and 'b', https//h/x?…",
    "IO Error of read_csv('https://h/x?S3CRET')": "IO Error of read_csv('https://h/x?…')",
    "folder '/cwd/http:/u:S3CRET@h' does not exist": "folder '/cwd/http:/h' does not exist",
    "Path('/cwd/https/u:S3CRET@h/x')": "Path('/cwd/https/h/x')",
}

#: Messages without a secret.
UNCHANGED = (
    "'runs/a?b.jsonl' does not exist: name a trace",
    "'/data/me@site/x?.jsonl', '/data//x@y' and 'a@b.jsonl'",
    "cannot read 'x': it's a file (docs: how-to/remote); use file: or http: or a:b@c",
    "no scheduler answers at 'tcp://127.0.0.1:8786': timed out after 10 s",
    "open file:///home/me@site/report.html yourself",
    "'s3://bucket/me@site/t.jsonl' and 'root://h//eos/x@y' and 'root/x?.jsonl'",
    "use https://, s3:// or root://",
    "SELECT a ? b FROM x -- 'a'",
    "invalid time '1:30:00': use 90",
)


@pytest.mark.parametrize("text", SHOWN)
def test_secrets_are_removed(text):
    assert safe_message(text) == SHOWN[text]
    assert safe_message(SHOWN[text]) == SHOWN[text]
    assert not re.search("S3C|RET", SHOWN[text])


@pytest.mark.parametrize("text", UNCHANGED)
def test_the_rest_is_shown(text):
    assert safe_message(text) == text


def test_names_like_urls():
    for name in ("http://h/x", "http:/h/x", "https//h/x", "s3:///b", "gs:b", "odd://h"):
        assert is_like_url(name), name
    for name in ("runs/x.jsonl", "/data//x", "root/x.jsonl", "a.jsonl", "x:1", "https", "."):
        assert not is_like_url(name), name
    assert is_like_url(str(Path("http://u:p@h/x")))
