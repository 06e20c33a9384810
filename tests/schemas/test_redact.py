"""Secrets are redacted in all strings of records, and everything else is unchanged."""

import json
import re
import time

import pytest

from roast_schemas.records import KINDS
from roast_schemas.redact import MARK, Redactor, names_a_secret


def plain(value):
    """Return a value with `<redacted>` for each mark, without the hash of the secret."""
    return json.loads(re.sub("<redacted:[0-9a-f]{10}>", MARK, json.dumps(value)))


HASH = "d57ec27ec2573513188be832b927b48f"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
MACAROON = "MDAxY2xvY2F0aW9uIE9wdGlvbmFsLmVtcHR5CjAwMThpZGVudGlmaWVyIGhzM2w1"

TRACEBACK = """\
  File "/usr/lib/python3.11/site-packages/me/auth.py", line 12, in get_token
    connect(host, password={value}, user="me")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
me.AuthError: tcp://127.0.0.1:40000 refused /tmp/x/token.json: no
"""

KILLED = """\
Attempted to run task 'sum-0123abcd' on 4 different workers, but all those workers died while \
running it. The last worker that attempt to run the task was tcp://127.0.0.1:40000. Inspecting \
worker logs is often a good next step to diagnose what went wrong. For more information see \
https://distributed.dask.org/en/stable/killed.html."""

KEY_ERROR = """\
Traceback (most recent call last):
  File "/x/auth.py", line 3, in get_token
    return tokens[key]
KeyError: 'abc'"""

# -- texts -----------------------------------------------------------------------------------

#: Texts, and the same texts with their secrets redacted.
SECRETS = [
    # URLs
    ("postgres://me:abc@h:5432/x", "postgres://<redacted>@h:5432/x"),
    ("postgres://me:a@b@h:5432/x", "postgres://<redacted>@h:5432/x"),
    ("https://me:abc@h/x?to=me@h2", "https://<redacted>@h/x?to=me@h2"),
    ("postgres://me:a/b@h:5432/x", "postgres://<redacted>@h:5432/x"),
    ("redis://:abc@h/0", "redis://<redacted>@h/0"),
    ("https://abcdefghijklmnopqrst@h/x", "https://<redacted>@h/x"),
    ("https://Zx9kQ2mVb7Lw4Tn8@h/x", "https://<redacted>@h/x"),
    ("https://Zx9kQ2mVb7Lw4Tn8:@h/x", "https://<redacted>@h/x"),
    ("https://abcdefghijklmnopqrst:@h/x", "https://<redacted>@h/x"),
    ("password=1234.5678", "password=<redacted>"),
    ("ssh://analysis-robot@h/x", "ssh://analysis-robot@h/x"),
    ("u=https%3A%2F%2Fme%3Aabc%40h%2F", "u=https%3A%2F%2F<redacted>%40h%2F"),
    ("s3?a=1&X-Amz-Signature=c&se=2&sp=r", "s3?a=1&X-Amz-Signature=<redacted>&se=2&sp=r"),
    ("s3?X-Amz-Credential=b%2F2&a=1", "s3?X-Amz-Credential=<redacted>&a=1"),
    ("s3?X-Amz-Security-Token=a&b=1 is", "s3?X-Amz-Security-Token=<redacted>&b=1 is"),
    ("s3?AWSAccessKeyId=a&b=1", "s3?AWSAccessKeyId=<redacted>&b=1"),
    ("gs?b=1&X-Goog-Signature=a", "gs?b=1&X-Goog-Signature=<redacted>"),
    ("https://h/x?key=abc&y=1", "https://h/x?key=<redacted>&y=1"),
    ("https://h/x?sig=a%2Bb%3D&se=2025", "https://h/x?sig=<redacted>&se=2025"),
    ("root://h//f?authz=Bearer%20abc&x=1", "root://h//f?authz=Bearer%20<redacted>&x=1"),
    ("x%3Faccess_token%3Dabc%26user%3Dme", "x%3Faccess_token%3D<redacted>%26user%3Dme"),
    ("x%3Fsig%3Dabc%26user%3Dme", "x%3Fsig%3D<redacted>%26user%3Dme"),
    # names and values
    ("token=abc, user=me", "token=<redacted>, user=me"),
    ("(password=abc)", "(password=<redacted>)"),
    ("password=p@s,s)w!rd, user=me", "password=<redacted>, user=me"),
    ("password: abc", "password: <redacted>"),
    ("DB_PASSWORD=abc USER=me", "DB_PASSWORD=<redacted> USER=me"),
    ("A=b\\ntok=abc\\nC=d", "A=b\\ntok=<redacted>\\nC=d"),
    ("x --api-key abc --verbose", "x --api-key <redacted> --verbose"),
    ("['x', '--password', 'a b', 'f']", "['x', '--password', '<redacted>', 'f']"),
    ("{'password': 'a b', 'x': 1}", "{'password': '<redacted>', 'x': 1}"),
    ('{"apiKey":"a b","x":1}', '{"apiKey":"<redacted>","x":1}'),
    ("{'api key': 'a b', 'x': 1}", "{'api key': '<redacted>', 'x': 1}"),
    ("{'token of x': 'a b'}", "{'token of x': '<redacted>'}"),
    ("{'key': 'abc', 'x': 1}", "{'key': '<redacted>', 'x': 1}"),
    ("{'credentials': {'a': ['b', 'c)']}, 'x': 1}", "{'credentials': <redacted>, 'x': 1}"),
    ("{'password': 'it\\'s a b', 'x': 1}", "{'password': '<redacted>', 'x': 1}"),
    (r"'{\'pwd\': \'a \\\'b\', \'x\': 1}'", r"'{\'pwd\': \'<redacted>\', \'x\': 1}'"),
    (r'"{\"pwd\": \"a b\", \"x\": 1}"', r'"{\"pwd\": \"<redacted>\", \"x\": 1}"'),
    ("{'url': 'x?token=abc', 'user': 'me'}", "{'url': 'x?token=<redacted>', 'user': 'me'}"),
    ("b'password=abc' in", "b'password=<redacted>' in"),
    ("password='a'b c", "password=<redacted> c"),
    ("secret key: abc", "secret key: <redacted>"),
    ("api key: abc", "api key: <redacted>"),
    ("refused\\naws key=abc, x=1", "refused\\naws key=<redacted>, x=1"),
    ("password='a b, user='me'", "password=<redacted>'"),
    ("password='a b", "password='<redacted>"),
    ("X-Auth-Token: abc", "X-Auth-Token: <redacted>"),
    ("Cookie: a=b; c=d\nHost: h", "Cookie: <redacted>\nHost: h"),
    ("<Token>abc</Token>", "<Token><redacted></Token>"),
    ("İ password=abc İ", "İ password=<redacted> İ"),
    ("X-Rucio-Auth-Token: me-/OU=A B/CN=me-abc", "X-Rucio-Auth-Token: <redacted>"),
    ("token: |\n  abc\n\n  d e\nuser: me", "token: |\n  <redacted>\nuser: me"),
    ("a:\n  password: >-\n    abc\n  x: 1", "a:\n  password: >-\n    <redacted>\n  x: 1"),
    ("'token: |\\n  abc'", "'token: |\\n  <redacted>"),
    # programs
    ("machine h login me password abc", "machine h login me password <redacted>"),
    ("curl -u me:abc https://h", "curl -u <redacted> https://h"),
    ("curl --user 'me:abc' https://h", "curl --user '<redacted>' https://h"),
    ("f(HTTPBasicAuth('me', 'a)b'), 'x')", "f(HTTPBasicAuth(<redacted>'), 'x')"),
    # source lines
    ('connect(password="a b", user="me")', 'connect(password="<redacted>", user="me")'),
    ('password: str = "a b"', 'password: str = "<redacted>"'),
    ('if password == "a b":', 'if password == "<redacted>":'),
    ('os.environ["X_TOKEN"] = "a b"', 'os.environ["X_TOKEN"] = "<redacted>"'),
    ('os.getenv("X_TOKEN", "a b")', 'os.getenv("X_TOKEN", "<redacted>")'),
    ('token = os.getenv("X") or "a b"', "token = <redacted>"),
    ('password = "a b" "c d"', "password = <redacted>"),
    ('password = "a b".format(x, "c")', "password = <redacted>"),
    ('password="""a b"""', "password=<redacted>"),
    ('f(auth=("me", "a b"), x=1)', "f(auth=<redacted>, x=1)"),
    ('f(auth=Basic("me", "a)b"), x=1)', "f(auth=<redacted>, x=1)"),
    ('f(password=(\n    "a b"\n), x=1)', "f(password=<redacted>, x=1)"),
    ('f(password=(\n    "a b",\n    "c', "f(password=<redacted>"),
    ("f(password=[[[[[a b]]]]], x=1)", "f(password=<redacted>)"),
    ("monkey: password=abc, user=me", "monkey: password=<redacted>, user=me"),
    (TRACEBACK.format(value='"a b"'), TRACEBACK.format(value=f'"{MARK}"')),
    # names that are also words of analyses
    ("?sig=12&pass=34", "?sig=<redacted>&pass=<redacted>"),
    ("pass=1234 pwd: /x", "pass=<redacted> pwd: <redacted>"),
    ("{'db_pass': 1234, 'pass': 'a b'}", "{'db_pass': <redacted>, 'pass': '<redacted>'}"),
    ("{'user': 'me', 'pass': '1234'}", "{'user': 'me', 'pass': '<redacted>'}"),
    ("db_pass:abc PWD=abc", "db_pass:<redacted> PWD=<redacted>"),
    ("wifi_pass:abc", "wifi_pass:<redacted>"),
    ("pass_phrase=abc PASS_DB=abc", "pass_phrase=<redacted> PASS_DB=<redacted>"),
    # schemes
    ("Authorization: Bearer abc", "Authorization: Bearer <redacted>"),
    ("'Authorization': 'Bearer abc', 'x'", "'Authorization': 'Bearer <redacted>', 'x'"),
    ("Authorization: Basic bWU6YWJj", "Authorization: Basic <redacted>"),
    ("sent Bearer abc to h", "sent Bearer <redacted> to h"),
    ("sent Basic bWU6YWJj to h", "sent Basic <redacted> to h"),
    # shapes
    (f"x {JWT} y", f"x {MARK} y"),
    ("x AKIAIOSFODNN7EXAMPLE y", "x <redacted> y"),
    ("x ghp_abcdefghijklmnopqrstuvwxyz0123456789 y", "x <redacted> y"),
    ("x glpat-abcdefghij0123456789 y", "x <redacted> y"),
    ("x xoxb-123456789012-abcdef y", "x <redacted> y"),
    ("x sk-proj-abcdefghij0123456789ABCD y", "x <redacted> y"),
    (f"x {MACAROON} y", "x <redacted> y"),
    ("x npm_abcdefghijklmnopqrstuvwxyz0123456789 y", "x <redacted> y"),
    ("x dckr_pat_abcdefghijklmnopqrstuvwxyz y", "x <redacted> y"),
    ("x GOCSPX-abcdefghijklmnopqrstuvwxyz12 y", "x <redacted> y"),
    ("x hvs.CAESIJabcdefghijklmnopqrstuvwxyz y", "x <redacted> y"),
    (f"load-sk-ant-api03-{'aB3' * 12}-x y", "load-<redacted> y"),
    (f"t_sk-proj-{'aB3' * 12} y", "t_<redacted> y"),
    (f"x-SG.{'aB3' * 7}x.{'aB3' * 14}x y", "x-<redacted> y"),
    (f"x-dop_v1_{HASH}{HASH} y", "x-<redacted> y"),
    (f"x-dapi{HASH}-2 y", "x-<redacted>-2 y"),
    (f"x-ATATT3x{'aB3=' * 20} y", "x-<redacted> y"),
    (f"x-gsk_{'aB3' * 17} y", "x-<redacted> y"),
    (f"x-glsa_{'aB3x' * 8}_0123abcd y", "x-<redacted> y"),
    (f"x-shpat_{HASH} y", "x-<redacted> y"),
    ("sshpass -p abc ssh h", "sshpass -p <redacted> ssh h"),
    ("sshpass -p 'a b' ssh h", "sshpass -p <redacted> ssh h"),
    ("https://hooks.slack.com/services/T0/B0/abc", "https://hooks.slack.com/services/<redacted>"),
    ("h/dav/public-files/AbCdEf123456789/f.root", "h/dav/public-files/<redacted>/f.root"),
    (f"x {PEM} y", "x <redacted> y"),
    (f"x {PEM!r} y", "x '<redacted>' y"),
    ("x -----BEGIN PRIVATE KEY-----\nMIIE", "x <redacted>"),
    # words
    ("the token is abc123def.", "the token is <redacted>."),
    ("invalid password Hunter2xyz", "invalid password <redacted>"),
    ("secret 'a_b-c_d-e' refused", "secret '<redacted>' refused"),
    ("password 'a b3 c d' refused", "password '<redacted>' refused"),
    ("password for me: abc123def", "password for me: <redacted>"),
    # one mark for one secret
    (f"password='postgres://me:abc@h Bearer {JWT}'", f"password='{MARK}'"),
    ("root://me:hunter", "root://<redacted>"),  # Dask cuts keys at hyphens
]  # fmt: skip

CLEAN = [
    "",
    KILLED,
    KEY_ERROR,
    "/x/site-packages/token.py:12: in parse",
    "root://eospublic.cern.ch//eos/path/file.root",
    "https://me@host/x and tcp://auth-node:8786 and /tmp/x@y/z",
    "3d594650-3436-4bf2-a2d9-0e1d0d4f2b4c da39a3ee5e6b4b0d3255bfef95601890afd80709",
    f"sum-{HASH}",
    f"('getitem-{HASH}', 2)",
    f"('get-token-{HASH}', 'SR1', 2)",
    "('token', 'SR1')",
    f"task-{HASH} and sk-{HASH}",
    *(
        f"{name}-{end}"
        for name in (
            "mask-proj",
            "load-sk-proj",
            "x_sk-ant",
            "read-dapi",
            "dapi",
            "SG.x",
            "gsk_x",
        )
        for end in (HASH, "3d594650-3436-4bf2-a2d9-0e1d0d4f2b4c", f"{HASH}-3")
    ),
    f"mask-proj-of-a-long-function-name-{HASH} MSG.{'abc' * 7}x.{'abc' * 14}x",
    f"{{'key': 'sum-{HASH}', 'keys': ['a']}}",
    "key=abc, key: abc, keys=['a'], key='abc'",
    "lost key 'sum-0123abcd', no such key: abc12345",
    "the author: me, the design: x, compass=north, monkey: 1, passed=3, signal: 11",
    "tokenize: 12, n_tokens=12, max_tokens: 4096",
    "password=None, token: str, secret=True",
    "password authentication failed, token has expired, a secret somewhere",
    "Bearer token expired; basic authentication failed",
    "expected token 'end of file' in x",
    "cannot read token /tmp/x509up_u1000 or token file:///tmp/x1234567",
    "ProxyError: refused; InvalidTokenError: expired",
    "tcp://[fe80::1] tcp://h:87. {scheme}://{host}:{port}/status",
    "task-finished-1700000000.5",
    "fit_pass:SR:2018",
    "('sig', 'ggHH') sig_xsec=0.031 pass_trigger: loose",
    "{'pass': 12, 'fail': 3, 'n': {'sig': -1.5e-3}}",
    "PWD=/home/me OLDPWD='/home/me/a b'",
    "docker run -u 1000:1000, python -u a.py, HTTPBasicAuth(user, password)",
    "machine learning: login with a password",
]


def test_secrets_in_text_are_replaced_and_other_text_stays():
    failures = []
    for given, expected in (*SECRETS, *((text, text) for text in CLEAN)):
        redactor = Redactor()
        redacted = redactor.text(given)
        found = plain(redacted), redactor.replaced
        if found != (expected, expected.count(MARK)):
            failures.append((given, found))
        # Redacted text is unchanged, and is not counted again.
        failures += [
            (again, redactor.text(again))
            for again in (redacted, expected)
            if (redactor.text(again), redactor.replaced) != (again, found[1])
        ]
        if given == expected:
            record = {"kind": "task", "key": given, "dependencies": [given]}
            assert [redactor.record(dict(record)) for _ in range(2)] == [record] * 2
    assert failures == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "piece",
    [
        "a=", "://", "://a:b", "x:y@", "'", '"', "\\", "\\'", "password", "password=",
        "password='", "password=(", "password=a(", "password=(\n", "password=\\'", "password ",
        "password = a or ", "token is ", "'token', '", "key=", "&key=", "'key': '", "api key ",
        "eyJ", "eyJ-", "eyJa.", "MDA-", "ghp_", "sk-", "-----BEGIN PRIVATE KEY-----", "%3D",
        "%3A%2F%2Fa%3A", "Bearer ", "Basic a", "<password>a", "a.", "_", "aA", "@", "--token ",
        "monkey=(", "monkey='", "key>a", "token '", "password=[)", "://:", "password for ",
        "'key': (", "'key': ['a', ", "?key=(", "pass.py:(",
        "machine ", "machine a login b password ", "-u a:", "BasicAuth('",
        "token: |\n  a",
        "token: |\n  a\n", "token: |\n\n", "hooks.slack.com/a/", "rucio_token: a'",
        "sk-ant-", "SG.", "sshpass -p ",
        "mysql ", "mysql -u ", "login a ", "value=", "sig=1a", "name=a value=", "{'value': ",
        "<name>a</name>",
        "Authorization: AWS ", "Authorization: Digest a=\"", "pass=", "sig=", "user=", "a_key=",
        "…", "ghp_…", "1//0", "aQ~", "1:AA", "-us1", "<value>", "(", "password=)", "pat.", "M.",
        "h:5432:", "-U a%", "-pass pass:", "private-lines: 1", "token_a='", "- name: a\n",
        "key", "key.", "\\nkey", "%ffkey", "aws key ", "n\\", "abc-key ",
    ],
)  # fmt: skip
def test_hostile_text_takes_at_most_a_second_per_megabyte(piece):
    # A quarter of a megabyte, to allow for a busy machine; a quadratic search would take
    # minutes.
    for text in (piece * (250_000 // len(piece)), piece * (125_000 // len(piece)) + "'x'=:@"):
        began = time.process_time()
        Redactor().text(text)
        assert time.process_time() - began < 1


# -- names -----------------------------------------------------------------------------------

NAMES_OF_SECRETS = [
    "token", "tokens", "accessToken", "AUTH_TOKEN", "csrftoken", "password", "dbpassword",
    "DBpassword", "db.passwd", "pwd", "passphrase", "smtp_pass", "db_pass", "client-secret",
    "SECRETS", "credentials", "aws creds", "http_proxy", "proxies", "X-Amz-Signature",
    "hub_signature", "bearer", "auth", "authz", "Authorization", "x-auth", "oauth2",
    "Set-Cookie",
    "cookies", "apikey", "APIkey", "secretkey", "api_key", "access-key-id", "private.key",
    "tls-key", "AWS_ACCESS_KEY_ID", "AWSAccessKeyId", "accesskeyid", "api_keys",
    "authtoken", "distributed.comm.tls.client.key", "password2", "token/refresh",
]  # fmt: skip

OTHER_NAMES = [
    "key", "keys", "stimulus_id", "processing-tasks", "lost-computed-tasks", "author",
    "authors", "monkey", "keyboard", "compass", "bypass", "passed", "passes", "passing",
    "signal", "design", "assigned", "tokenize", "tokenizer", "KeyError", "ProxyError",
    "InvalidTokenError", "key_collisions", "lost_keys", "missing-keys", "dask_key_name",
    "task_key", "key_prefix", "secretary", "credit", "approximate", "", "…", "turkey",
    f"get_token-{HASH}", f"('sig_hist-{HASH}', 2)",
    *(field for kind in KINDS.values() for field in kind.__annotations__),
]  # fmt: skip


def test_names_of_secrets():
    assert [name for name in NAMES_OF_SECRETS if not names_a_secret(name)] == []
    assert [name for name in OTHER_NAMES if names_a_secret(name)] == []


#: Payloads of events, and the same with secrets redacted, or None if unchanged.
PAYLOADS = [
    ({"token": "abc", "host": "h"}, {"token": MARK, "host": "h"}),
    ({"a": [{"b": {"password": "abc"}}]}, {"a": [{"b": {"password": MARK}}]}),
    ({"credentials": {"user": "me", "x": ["y"]}}, {"credentials": MARK}),
    ({"secrets": ["a", "b"]}, {"secrets": MARK}),
    ({"pwd": 1234, "PWD": "abc"}, {"pwd": MARK, "PWD": MARK}),
    ({"db_pass": 1234, "pass": "abc"}, {"db_pass": MARK, "pass": MARK}),
    ({"pass": 12, "sig": 0.5, "n": {"fit_pass": 3}, "sig_xsec": 0.031}, None),
    ({"pass_trigger": "x", "PWD": "/home/me"}, None),
    ({"token": b"abc"}, {"token": MARK}),
    ({"token": None, "auth": True, "secret": "", "creds": {}}, None),
    ({"n_tokens": 12, "max_tokens": 4096, "token_count": 3.5}, None),
    ({"n_tokens": "abc"}, {"n_tokens": MARK}),
    ({"key": "x", "keys": ["y"], "key_collisions": 0}, None),
    ({"author": "me", "monkey": "b", "passed": "c", "signal": "d"}, None),
    ({f"get_token-{HASH}": ["tcp://127.0.0.1:40000"]}, None),
    ({"data": b"abc"}, {"data": "<3 bytes>"}),
    ({"name": "DB_PASSWORD", "value": "abc"}, {"name": "DB_PASSWORD", "value": MARK}),
    ({"name": "n_tokens", "value": 12}, None),
    ({"argv": ["x", "--token", "abc", "f"]}, {"argv": ["x", "--token", MARK, "f"]}),
    ({"argv": ("-u", "me", "--api-key")}, {"argv": ["-u", "me", "--api-key"]}),
    ({"argv": ["--password", 1234]}, {"argv": ["--password", MARK]}),
    ({"argv": ["--n-tokens", 5, "--password", "--x"]}, None),
    (
        {"headers": [["X-Auth-Token", "abc"], ("password", "a b"), ["Accept", "x"]]},
        {"headers": [["X-Auth-Token", MARK], ["password", MARK], ["Accept", "x"]]},
    ),
    ({"counts": [["n_tokens", 12]], "samples": ["sig", "bkg"]}, None),
    # Packages and their versions.
    ({"value": [["asttokens", "3.0.2"], ["tokenizers", "0.21.0rc1"]]}, None),
    ({"value": [["token", "3.0.2-x"]]}, {"value": [["token", MARK]]}),
    ({"s3://me:abc@h": 1}, {"s3://<redacted>@h": 1}),
    ({"url": "s3://me:abc@h/f"}, {"url": f"s3://{MARK}@h/f"}),
]


def test_payloads_of_events():
    for payload, expected in PAYLOADS:
        redactor, before = Redactor(), repr(payload)
        expected = payload if expected is None else expected  # noqa: PLW2901
        for _ in range(2):  # the second time from the cache
            given = {"kind": "event", "t": 1.5, "topic": "x", "payload": dict(payload)}
            record = plain(redactor.record(given))
            assert record == {"kind": "event", "t": 1.5, "topic": "x", "payload": expected}
        assert redactor.replaced == 2 * json.dumps(record).count(MARK), before


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("annotations", {"key": "abc"}, {"key": MARK}),
        ("annotations", {"a": [{"key": "abc"}]}, {"a": [{"key": MARK}]}),
        ("annotations", {"key": 1}, {"key": 1}),
        ("usermeta", {"key": "abc", "xs": 1.5}, {"key": MARK, "xs": 1.5}),
        ("usermeta", "{'token': 'a b', 'x': 'c…", "{'token': '<redacted>', 'x': 'c…"),
        ("usermeta", "{'x': 'c', 'token': 'a b…", "{'x': 'c', 'token': '<redacted>"),
        ("payload", {"key": "abc"}, {"key": "abc"}),
    ],
)
def test_a_plain_key_is_a_secret_only_in_mappings_of_the_user(field, value, expected):
    record = plain(Redactor().record({"kind": "chunk", "key": "k", field: value}))

    assert record == {"kind": "chunk", "key": "k", field: expected}


@pytest.mark.parametrize(
    ("section", "name", "value", "expected"),
    [
        ("dask configuration", "distributed.comm.tls.client.key", "/x/k.pem", MARK),
        ("dask configuration", "distributed.comm.tls.client.key", None, None),
        ("dask configuration", "distributed.scheduler.work-stealing", True, True),
        ("dask configuration", "jobqueue.env", ["TOKEN=a", "A=b"], [f"TOKEN={MARK}", "A=b"]),
        ("dask configuration", "x", {"key": "a", "cert": "b"}, {"key": MARK, "cert": "b"}),
        ("dask configuration", "key", "a", MARK),
        ("credentials", "s3", "token=a Bearer b", MARK),
        ("scheduler", "address", "tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786"),
    ],
)
def test_facts_of_the_environment_are_redacted_by_their_names(section, name, value, expected):
    redactor = Redactor()
    fact = {"kind": "environment", "t": 1.0, "section": section, "name": name, "value": value}

    record = plain(redactor.record(fact))

    assert (record["section"], record["name"], record["value"]) == (section, name, expected)
    assert redactor.replaced == json.dumps(record).count(MARK)


# -- records ---------------------------------------------------------------------------------


def test_a_key_is_redacted_identically_in_every_record():
    key, redactor = "load-root://me:abc@host//f", Redactor()
    clean = redactor.text(key)
    assert plain(clean) == "load-root://<redacted>@host//f"
    records = [
        {"kind": "task", "key": key, "prefix": key, "group": key, "dependencies": [key]},
        {"kind": "fine_metric", "prefix": key, "activity": "compute", "delta": 1.5},
        {"kind": "profile", "prefix": key, "tree": {"frames": [{"name": key}]}},
        {"kind": "worker_sample", "worker": key, "metrics": {"cpu": 1.0}},
        {"kind": "transfer", "keys": {key: 1, "load-token-3": 10}, "source": key},
        {"kind": "span", "span_name": ["a", key]},
        {"kind": "transition", "key": key, "startstops": ({"source": key, "start": 1.0},)},
        {"kind": "transition", "key": "a", "cause": key, "traceback": f"at {key}"},
        {"kind": "worker_transition", "key": key, "state": "released"},
        {"kind": "event", "topic": key, "payload": {key: [key, (1, key)]}},
        {"kind": "loss", "reason": key},
        {"kind": "header", "settings": {"path": key}},
    ]

    for record in records:
        expected = json.loads(json.dumps(record).replace(key, clean))
        for _ in range(2):
            assert redactor.record(json.loads(json.dumps(record))) == expected


def test_different_secrets_have_different_marks_and_equal_ones_the_same():
    keys = [f"hist-password=SR{number}" for number in range(1_000)]
    key, names = b"of this run", ("key", "prefix", "group", "filename", "dataset")

    redacted = [
        Redactor(key=key).record({"kind": "task", **dict.fromkeys(names, text)})
        for text in keys
    ]

    assert [{record[name] for name in names} for record in redacted] == [
        {record["key"]} for record in redacted
    ]
    assert len({record["key"] for record in redacted}) == 1_000
    assert {plain(record["key"]) for record in redacted} == {"hist-password=<redacted>"}
    # In a mapping, as a value of any type, and with the key of another run.
    mapping = Redactor(key=key).record({"kind": "transfer", "keys": dict.fromkeys(keys, 1)})
    assert list(mapping["keys"]) == [record["key"] for record in redacted]
    values = ["SR1", 1, 2, ["SR1"], ["SR2"], {"a": 1}]
    payload = Redactor(key=key).record(
        {"kind": "event", "payload": [{"token": v} for v in values]}
    )
    marks = [item["token"] for item in payload["payload"]]
    assert (marks[0], len(set(marks))) == (redacted[1]["key"].rpartition("=")[2], len(values))
    assert Redactor().text(keys[1]) != Redactor().text(keys[1]) != redacted[1]["key"]


def test_names_of_analyses_are_unchanged_in_every_field():
    """Ten keys with `pass=SR0` and so on remain ten, with their prefix and their group."""
    texts = [
        *(f"hist-pass=SR{number}" for number in range(10)),
        *(
            "pass=1",
            "sig:ttH_M125",
            "DYJets__key=M50",
            "root://h//mc/DYJets__key=M50/pass=1.root",
        ),
    ]
    names = (
        *("token_muon", "proxyMET", "proxy_weight", "das_key", "xsec_key", "dataset_key"),
        *("sort_key", "hist_key", "sig", "signature", "pass"),
    )
    values = ["medium", 3.2, 12000, "/DYJetsToLL_M-50/RunIISummer20UL18NanoAODv9/NANOAODSIM"]
    records = [
        {"kind": "task", "key": text, "prefix": text, "group": text, "dependencies": texts}
        for text in texts
    ] + [
        {"kind": "chunk", "key": text, "dataset": text, "filename": text, "usermeta": {name: v}}
        for text in texts
        for name in names
        for v in (*values, values)
    ]  # fmt: skip

    redactor = Redactor()

    assert [redactor.record(json.loads(json.dumps(record))) for record in records] == records


def test_patterns_of_the_user():
    redactor = Redactor([r"cms-\d+", "x*"])

    for _ in range(2):
        record = {"kind": "event", "topic": "cms-12 cms-3", "payload": {"cms-4": 1}}
        assert plain(redactor.record(record)) == {
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
