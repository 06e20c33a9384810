"""Secrets are redacted in all strings of records; more texts in nightly/test_redaction.py."""

import json

import pytest

from roast_schemas.records import KINDS
from roast_schemas.redact import MARK, Redactor, names_a_secret

HASH = "d57ec27ec2573513188be832b927b48f"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"

#: Secrets in text; § stands for the secret.
SECRETS = [
    "postgres://§@h:5432/x", "root://me:hunter", "u=https%3A%2F%2F§%40h%2F",
    "s3?a=1&X-Amz-Signature=§&b=2", "https://h/x?key=§&y=1", "token=§, user=me",
    "password=§", "DB_PASSWORD=§ USER=me", "x --api-key § --verbose",
    "{'password': '§', 'x': 1}", '{"apiKey":"§","x":1}', "['--password', '§', 'f']",
    'connect(password="§", user="me")', 'os.environ["X_TOKEN"] = "§"', "Cookie: §\nHost: h",
    "Authorization: Bearer §", "sent Basic § to h", "x § y", "the token is §.",
    "<Token>§</Token>",
]  # fmt: skip
VALUES = {
    "postgres": "me:abc", "u=": "me%3Aabc", "root": "", "sent Basic": "bWU6YWJj", "x §": TOKEN,
    "Cookie": "a=b; c=d",
}  # fmt: skip

CLEAN = [
    "", f"sum-{HASH}", f"('get-token-{HASH}', 2)", "('token', 'SR1')", f"task-{HASH}",
    "KeyError: 'abc'", "root://eospublic.cern.ch//eos/file.root", "tcp://10.0.0.1:8786.",
    "{scheme}://{host}:{port}/status", "the author: me, n_tokens=12, monkey: 1, passed=3",
    "password=None, token: str", "Bearer token expired", "task-finished-1700000000.5",
    "ProxyError: refused", "/x/site-packages/token.py:12: in parse",
]  # fmt: skip


def test_secrets_in_text_are_replaced_and_the_rest_remains():
    redactor = Redactor()
    for template in SECRETS:
        secret = next((v for k, v in VALUES.items() if template.startswith(k)), "abc123def")
        text = template.replace("§", secret)
        expected = template.replace("§", MARK).replace("me:hunter", MARK)
        assert redactor.text(text) == expected
        assert redactor.text(expected) == expected
    assert redactor.replaced == len(SECRETS)


def test_clean_text_remains():
    redactor = Redactor()
    for text in CLEAN * 2:
        assert redactor.text(text) == text
        record = {"kind": "task", "key": text, "dependencies": [text]}
        assert redactor.record(dict(record)) == record
    assert redactor.replaced == 0


def test_names_of_secrets():
    secrets = "accessToken AUTH_TOKEN dbpassword pwd db_pass client-secret http_proxy sig authz"
    secrets += " X-Amz-Signature Set-Cookie apikey api_key private.key AWSAccessKeyId password2"
    others = "key keys author monkey passed signal tokenizer KeyError lost_keys task_key prefix"

    assert [name for name in secrets.split() if not names_a_secret(name)] == []
    assert [name for name in others.split() if names_a_secret(name)] == []
    fields = {field for kind in KINDS.values() for field in kind.__annotations__}
    assert [field for field in fields if names_a_secret(field)] == []


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"token": "abc", "host": "h"}, {"token": MARK, "host": "h"}),
        ({"a": [{"b": {"password": "abc"}}]}, {"a": [{"b": {"password": MARK}}]}),
        ({"credentials": {"user": "me"}, "pwd": 1}, {"credentials": MARK, "pwd": MARK}),
        ({"token": None, "auth": True, "n_tokens": 12}, {"token": None, "auth": True,
                                                          "n_tokens": 12}),
        ({"data": b"abc", "token": b"abc"}, {"data": "<3 bytes>", "token": MARK}),
        ({"name": "DB_PASSWORD", "value": "abc"}, {"name": "DB_PASSWORD", "value": MARK}),
        ({"argv": ["x", "--token", "abc", "f"]}, {"argv": ["x", "--token", MARK, "f"]}),
        ({"s3://me:a@h": 1, "s3://me:b@h": 2}, {f"s3://{MARK}@h": 1, f"s3://{MARK}@h 2": 2}),
    ],
)  # fmt: skip
def test_mappings(payload, expected):
    redactor = Redactor()
    for _ in range(2):  # the second time from the cache
        record = redactor.record({"kind": "event", "topic": "x", "payload": dict(payload)})
        assert record["payload"] == expected


def test_a_plain_key_is_a_secret_only_in_mappings_of_the_user():
    redactor = Redactor()

    chunk = redactor.record({"kind": "chunk", "key": "k", "usermeta": {"key": "abc", "x": 1}})
    event = redactor.record({"kind": "event", "payload": {"key": "abc"}})

    assert (chunk["key"], chunk["usermeta"]) == ("k", {"key": MARK, "x": 1})
    assert event["payload"] == {"key": "abc"}


def test_facts_of_the_environment_are_judged_by_their_names():
    def value(section, name, value):
        fact = {"kind": "environment", "section": section, "name": name, "value": value}
        return Redactor().record(fact)["value"]

    assert value("dask configuration", "distributed.comm.tls.client.key", "/k.pem") == MARK
    assert value("dask configuration", "jobqueue.env", ["TOKEN=a", "A=b"]) == [
        f"TOKEN={MARK}",
        "A=b",
    ]
    assert value("credentials", "s3", "abc") == MARK
    assert value("scheduler", "address", "tcp://127.0.0.1:8786") == "tcp://127.0.0.1:8786"


def test_a_key_is_redacted_identically_in_every_record():
    key, clean = "load-root://me:abc@host//f", f"load-root://{MARK}@host//f"
    redactor = Redactor()
    records = [
        {"kind": "task", "key": key, "prefix": key, "group": key, "dependencies": [key]},
        {"kind": "fine_metric", "prefix": key, "activity": "compute", "delta": 1.5},
        {"kind": "profile", "prefix": key, "tree": {"frames": [{"name": key}]}},
        {"kind": "worker_sample", "worker": key, "metrics": {"cpu": 1.0}},
        {"kind": "transfer", "keys": {key: 1, "load-token-3": 10}, "source": key},
        {"kind": "span", "span_name": ["a", key]},
        {"kind": "transition", "key": key, "startstops": ({"source": key, "start": 1.0},)},
        {"kind": "worker_transition", "key": key, "state": "released"},
        {"kind": "event", "topic": key, "payload": {key: [key, (1, key)]}},
        {"kind": "loss", "reason": key},
        {"kind": "header", "settings": {"path": key}},
    ]

    for record in records:
        expected = json.loads(json.dumps(record).replace(key, clean))
        for _ in range(2):
            assert redactor.record(json.loads(json.dumps(record))) == expected
    sizes = redactor.record({"kind": "transfer", "keys": {"s3://me:a@h": 1, "s3://me:b@h": 2}})
    assert sizes["keys"] == {f"s3://{MARK}@h": 1, f"s3://{MARK}@h 2": 2}


def test_patterns_of_the_user():
    redactor = Redactor([r"cms-\d+", "x*"])

    for _ in range(2):
        record = {"kind": "event", "topic": "cms-12 cms-3", "payload": {"cms-4": 1}}
        assert redactor.record(record) == {
            "kind": "event",
            "topic": f"{MARK} {MARK}",
            "payload": {MARK: 1},
        }
    assert redactor.replaced == 6
    assert Redactor(["event|topic"]).record({"kind": "event", "topic": "a"})["kind"] == "event"
    with pytest.raises(ValueError, match=r"invalid regular expression '\(unclosed'"):
        Redactor(["(unclosed"])


def test_caches_are_bounded_and_deep_values_are_replaced(monkeypatch):
    monkeypatch.setattr("roast_schemas.redact.MAX_CACHED", 3)
    redactor, nested = Redactor(), ["hunter2"]
    for _ in range(500):
        nested = [nested]

    for key in [*"abcdefg", "token=x"]:
        redactor.record({"kind": "transition", "key": key})

    assert redactor.replaced == 1
    assert "hunter2" not in str(redactor.record({"kind": "event", "payload": nested}))
