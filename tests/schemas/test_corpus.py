"""Recall and precision of redaction, on forms of secrets and on innocent texts."""

import random
import re
import string

from tests.schemas.secret_forms import FORMS, INNOCENT, SLOT, TOKENS, VALUES

from roast_schemas.redact import Redactor

CHARACTERS = {
    "hex": "0123456789abcdef",
    "upper": string.ascii_uppercase + "234567",
    "lower": string.ascii_lowercase + string.digits,
    "alnum": string.ascii_letters + string.digits,
}

#: Texts around a token.
AROUND = ["{}", "x {} y", 'x="{}"', "x\\n{}\\n", "['{}', 1]", "({})", "u%3D{}%26", "x: {}."]


def plain(text):
    return re.sub("<redacted:[0-9a-f]{10}>", "<redacted>", text)


def forms():
    """Return the forms; the lines of a block of YAML are one."""
    texts = re.split(r"\n(?! )", FORMS.strip("\n"))
    return [text.replace("\\n", "\n") if "]\\n" in text else text for text in texts]


def test_recall_and_precision():
    random_ = random.Random(7)
    secrets = [[(form.replace(SLOT, value), value) for value in VALUES] for form in forms()]
    for parts in TOKENS:
        token = "".join(
            part
            if isinstance(part, str)
            else "".join(random_.choices(CHARACTERS[part[0]], k=part[1]))
            for part in parts
        )
        secrets.append([(around.format(f"«{token}»"), token) for around in AROUND])

    leaks, inexact = [], []
    for texts in secrets:
        for marked, secret in texts:
            redactor = Redactor()
            text = re.sub("[«»]", "", marked)
            redacted = redactor.text(text)
            part = (
                marked[marked.index("«") + 1 : marked.index("»")] if "«" in marked else secret
            )
            leaks += [(text, redacted)] if secret in redacted else []
            inexact += (
                [(text, redacted)]
                if plain(redacted) != text.replace(part, "<redacted>")
                else []
            )
            assert redactor.text(redacted) == redacted
    innocent = INNOCENT.strip("\n").split("\n")
    touched = [(text, found) for text in innocent if (found := Redactor().text(text)) != text]

    assert len(secrets) >= 300
    assert len(innocent) == len(set(innocent)) >= 300
    total = sum(map(len, secrets))
    print(f"recall {1 - len(leaks) / total:.2%} of {total} texts in {len(secrets)} forms")
    # An English word in quotes after "password" can be the password, or a message.
    assert [text for text, _ in leaks if "correcthorse" not in text] == []
    assert len(leaks) <= 0.01 * total, leaks
    assert len(inexact) <= 0.01 * total, inexact
    assert touched == []


def test_innocent_texts_remain_in_every_field():
    innocent = INNOCENT.strip("\n").split("\n")
    redactor = Redactor()
    for text in innocent:
        records = [
            {"kind": "task", "key": text, "prefix": text, "dependencies": [text]},
            {
                "kind": "chunk",
                "key": text,
                "dataset": text,
                "filename": text,
                "columns": [text],
            },
            {"kind": "transition", "key": text, "exception": text, "traceback": text},
            {"kind": "event", "topic": text, "payload": {"a": [text, {"b": text}]}},
        ]
        for record in records:
            assert redactor.record(dict(record)) == record
