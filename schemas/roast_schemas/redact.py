"""Secrets stay out of the trace: what names one or looks like one is replaced.

A :class:`Redactor` sees every record just before it becomes a line. Two questions are
asked, and each has its own part of this module:

* Does a name say that its value is a secret? The name is the key of a mapping, or stands
  before a value in running text: ``password="…"``, ``'token': '…'``, ``--api-key …``,
  ``?X-Amz-Signature=…``. A name is judged by its words, so that ``n_tokens``, ``monkey``
  and ``author`` are none.
* Does a piece of text have the shape of a secret, whatever stands around it? So have
  ``user:password@`` in a URL, a JSON web token, a private key, the tokens of well-known
  services.

Only the secret is replaced; host, path, name and the other words stay. In doubt more is
replaced rather than less. Every search takes time in proportion to the text, also if the
text is made to be slow: a value that has no end is replaced as far as it was looked at,
and the search goes on behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, Final

#: What stands in the place of a secret.
MARK: Final = "<redacted>"

#: Part of a text that is a secret: start and stop.
Span = tuple[int, int]

#: Texts up to this length are remembered once they were found clean: keys come again.
MAX_REMEMBERED_LENGTH: Final = 256

#: So many clean texts are remembered, then all are forgotten: some 10 MB.
MAX_REMEMBERED: Final = 65_536

#: What is nested deeper than this is replaced unseen.
MAX_DEPTH: Final = 100

#: A bracket that is not closed after so many lines is taken to end there.
MAX_BRACKET_LINES: Final = 20

#: Records that hold numbers, addresses and Dask's own words alone.
_WITHOUT_TEXT: Final = frozenset({"worker_sample", "fine_metric"})

#: Records of which only the key, and what is said of an error, is not Dask's own.
_OF_ONE_TASK: Final = frozenset({"transition", "worker_transition", "spill"})

#: Fields whose mappings are the user's: a plain ``key`` there is none of Dask's.
_USERS_FIELDS: Final = frozenset({"usermeta", "annotations"})


class Redactor:
    """Replaces secrets in records.

    Parameters
    ----------
    patterns : iterable of str
        More regular expressions; whatever they match is replaced.

    Attributes
    ----------
    replaced : int
        How many :data:`MARK` were put in so far. A secret counts each time it is met.

    Raises
    ------
    ValueError
        If a pattern is no regular expression.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = tuple(map(_compiled, patterns))
        self._clean: set[str] = set()
        self.replaced = 0

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Give the record without its secrets.

        Parameters
        ----------
        record : dict
            As it would be written; it may be changed in place.
        """
        kind = record.get("kind")
        if kind in _OF_ONE_TASK:
            if record.get("key") not in self._clean:
                record["key"] = self._value(record.get("key"))
            for field in ("cause", "exception", "traceback"):
                if field in record:
                    record[field] = self._value(record[field])
            return record
        if kind in _WITHOUT_TEXT:
            return record
        if kind == "transfer":
            # A key may speak of a token; what it is mapped to is a size all the same.
            sizes: dict[Any, Any] = {}
            for key, nbytes in (record.get("keys") or {}).items():
                sizes[_unused(self._value(key), sizes)] = nbytes
            record["keys"] = sizes
            return record
        hides = kind == "environment" and (
            names_a_secret(str(record.get("section"))) or _names_pair(record, users=True)
        )
        # The names of the fields and kinds are the schema's; no pattern may change them.
        for field, value in record.items():
            if hides and field == "value":
                record[field] = self._whole(value)
            elif field != "kind":
                users = field in _USERS_FIELDS or (kind == "environment" and field == "value")
                record[field] = self._named(field, value, users=users, depth=0)
        return record

    def text(self, text: str) -> str:
        """Give a text without its secrets."""
        lowered = text.lower()
        spans = list(_spans(text, lowered)) if _SUSPECT.search(lowered) else []
        for pattern in self._patterns:
            spans += [match.span() for match in pattern.finditer(text)]
        if not spans:
            return text
        pieces, at = [], 0
        for start, stop in _merged(spans):
            if start < stop and text[start:stop] != MARK:
                pieces += [text[at:start], MARK]
                at = stop
                self.replaced += 1
        return "".join(pieces) + text[at:]

    def _value(self, value: Any, *, users: bool = False, depth: int = 0) -> Any:
        """Clean a value whose name, if any, is harmless."""
        if isinstance(value, str):
            return value if value in self._clean else self._remembered(value)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, (bytes, bytearray)):
            return f"<{len(value)} bytes>"
        if depth >= MAX_DEPTH:
            return self._whole(value)
        if isinstance(value, dict):
            return self._mapping(value, users=users, depth=depth + 1)
        if isinstance(value, (list, tuple)):
            return self._sequence(value, users=users, depth=depth + 1)
        return value

    def _remembered(self, text: str) -> str:
        cleaned = self.text(text)
        # A text with a secret is judged anew each time, so that each time is counted.
        if cleaned is text and len(text) <= MAX_REMEMBERED_LENGTH:
            if len(self._clean) >= MAX_REMEMBERED:
                self._clean.clear()
            self._clean.add(text)
        return cleaned

    def _mapping(self, mapping: dict[Any, Any], *, users: bool, depth: int) -> dict[Any, Any]:
        named = _names_pair(mapping, users=users)
        cleaned: dict[Any, Any] = {}
        for name, item in mapping.items():
            if named and name == "value":
                value = self._whole(item)
            else:
                value = self._named(name, item, users=users, depth=depth)
            cleaned[_unused(self._value(name), cleaned)] = value
        return cleaned

    def _sequence(
        self, items: list[Any] | tuple[Any, ...], *, users: bool, depth: int
    ) -> list[Any]:
        """Clean the items; one that follows ``--password`` is that option's value."""
        cleaned, after_option = [], False
        for item in items:
            if isinstance(item, str):
                hides = after_option and not item.startswith("--")
                cleaned.append(self._whole(item) if hides else self._value(item))
                after_option = item.startswith("-") and names_a_secret(item)
                after_option = after_option and _OPTION.fullmatch(item) is not None
            else:
                cleaned.append(self._value(item, users=users, depth=depth))
        return cleaned

    def _named(self, name: Any, value: Any, *, users: bool, depth: int) -> Any:
        """Clean a value that may be a secret by its name."""
        if isinstance(name, str) and (
            names_a_secret(name) or (users and isinstance(value, str) and _is_plain_key(name))
        ):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and _counts(name)):
                return self._whole(value)
        return self._value(value, users=users, depth=depth)

    def _whole(self, value: Any) -> Any:
        """Replace a value whole; one that says nothing, or is replaced already, stays."""
        if value is None or isinstance(value, bool) or value in ("", MARK, [], {}, ()):
            return value
        self.replaced += 1
        return MARK


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error


def _merged(spans: list[Span]) -> Iterator[Span]:
    """Join the spans that overlap or touch, so that each secret has one mark."""
    spans.sort()
    start, stop = spans[0]
    for next_start, next_stop in spans[1:]:
        if next_start > stop:
            yield start, stop
            start, stop = next_start, next_stop
        else:
            stop = max(stop, next_stop)
    yield start, stop


def _unused(name: Any, mapping: dict[Any, Any]) -> Any:
    """Give a number to a name that became another's when its secret went."""
    if name not in mapping or not isinstance(name, str):
        return name
    return next(
        numbered
        for number in range(2, len(mapping) + 3)
        if (numbered := f"{name} {number}") not in mapping
    )


# --- names ---------------------------------------------------------------------------------

#: Words of camelCase; of ``AWSAccessKeyId`` they are aws, access, key, id.
_CAMEL_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_LETTERS: Final = re.compile(r"[A-Za-z]+")

#: What a key is for, if it is no key of a mapping.
_KEY_OF: Final = (
    "api|access|secret|private|priv|auth|ssh|rsa|dsa|pgp|gpg|aes|hmac|tls|ssl|master|account"
    "|shared|storage|encryption|decryption|crypto|signing|session|subscription|license|aws"
)

_SECRET_WORD: Final = re.compile(
    r"\w*(?:password|passwd|passphrase|passcode|credential)\w*"
    r"|(?:db|user|ssh|key|my)?pass|\w*pwd|\w*tokens?|\w*secrets?|\w*creds|cred"
    r"|\w*prox(?:y|ies)|\w*signatures?|sig|\w*bearer"
    r"|(?:x|o|http|my)?auth|auth[zn]|\w*authorization|\w*cookies?|jwts?|macaroons?"
    rf"|\w*(?:{_KEY_OF})keys?(?:id)?"
)

#: Beside ``key`` alone these speak of Dask's keys.
_DASK_KEY_WORDS: Final = frozenset(
    {
        "dask",
        "task",
        "tasks",
        "name",
        "prefix",
        "group",
        "split",
        "dependency",
        "dependencies",
        "dependent",
        "collision",
        "collisions",
        "in",
        "memory",
        "report",
    }
)

#: ``KeyError`` and ``ProxyError`` name what went wrong, not a key and a proxy.
_NO_NAMES: Final = frozenset(
    {"error", "errors", "exception", "exceptions", "warning", "warnings"}
)

#: A number under a name with one of these counts something.
_COUNT_WORDS: Final = frozenset(
    {
        "n",
        "num",
        "nb",
        "number",
        "count",
        "counts",
        "max",
        "min",
        "total",
        "len",
        "length",
        "size",
        "limit",
        "rate",
        "mean",
        "avg",
    }
)


#: The text of a tuple, or what ends with one of Dask's hashes: no name, and no key that
#: opens anything.
_DASK_KEY: Final = re.compile(
    r"\(.*|.*-(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.DOTALL
)


@lru_cache(maxsize=4_096)
def names_a_secret(name: str) -> bool:
    """Tell from a name whether its value is a secret; a plain ``key`` is none."""
    # One who hides a name in a very long one has no name to be judged.
    name = name if len(name) <= 400 else name[:200] + " " + name[-200:]
    words = _words(name)
    if not words or words[-1] in _NO_NAMES or _DASK_KEY.fullmatch(name):
        return False
    candidates = {*words, *(run.lower() for run in _LETTERS.findall(name))}
    if any(map(_SECRET_WORD.fullmatch, candidates)):
        return True
    beside = {word for word in words if word not in ("key", "keys")}
    if "key" in words and beside and not beside <= _DASK_KEY_WORDS:
        # `n_key` is a name for how many, too: `_counts` tells by the value.
        return True
    return "keys" in words and any(map(_QUALIFIER.fullmatch, beside))


_QUALIFIER: Final = re.compile(_KEY_OF)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _CAMEL_WORDS.findall(name)]


def _is_plain_key(name: str) -> bool:
    return _words(name) == ["key"]


def _counts(name: str) -> bool:
    return not _COUNT_WORDS.isdisjoint(_words(name))


def _names_pair(mapping: dict[Any, Any], *, users: bool) -> bool:
    """Tell whether ``name`` names a ``value`` beside it that is a secret."""
    name = mapping.get("name")
    if "value" not in mapping or not isinstance(name, str):
        return False
    value = mapping["value"]
    if isinstance(value, (int, float)) and _counts(name):
        return False
    return names_a_secret(name) or (users and isinstance(value, str) and _is_plain_key(name))


# --- text ----------------------------------------------------------------------------------


#: Every name of a secret holds one of these. It is sought in text in lower case: an
#: expression that ignores case is several times slower.
_STEM: Final = re.compile(
    "pass|pwd|prox|token|secret|sig|cred|cookie|bearer|auth|key|jwt|macaroon"
)

#: Tokens that show what they are. What follows a beginning is long, so that a text of
#: beginnings alone is read once.
_TOKEN: Final = re.compile(
    r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|gh[pousr]_[A-Za-z0-9]{20,}+"
    r"|github_pat_\w{20,}+"
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[\w.-]{16,}+"
    r"|xox[a-z]-[\w-]{10,}+"
    r"|xapp-[\w-]{10,}+"
    r"|rk_(?:live|test)_\w{10,}+|sk_(?:live|test)_\w{10,}+"
    r"|AIza[\w-]{30,}+"
    r"|ya29\.[\w-]{16,}+"
    r"|hf_[A-Za-z0-9]{30,}+"
    r"|pypi-[\w-]{50,}+"
    r"|MDA[A-Za-z0-9+/_-]{40,}+={0,2}"
    # The end of `task-`, or before Dask's hash, it is none.
    r"|sk-(?<![\w-]sk-)(?![0-9a-f]{32}(?![\w-]))[\w-]{20,}+"
)

#: The one cheap question, asked of the text in lower case: without any of these it holds
#: no secret. Each part begins with a letter as it is, so that the search can skip to those.
_SUSPECT: Final = re.compile(
    rf"{_STEM.pattern}|@|%40|basic|eyj|akia|asia|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_"
    "|gl[a-z]{2,5}-|xox|xapp-|rk_live|rk_test|sk_live|sk_test|aiza|ya29|hf_|pypi-|mda|sk-"
)

_ASCII_LOWER: Final = str.maketrans({letter: letter.lower() for letter in ascii_uppercase})

_JSON_WEB_TOKEN: Final = re.compile(
    r"(?<![\w-])(?P<head>[\w-]{10,}+)\.[\w-]{5,}+(?:\.[\w-]*+){0,3}"
)

_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")

_PRIVATE_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")

_BEARER: Final = re.compile(
    r"(?i)(?<![a-z])bearer(?:[ \t]{1,20}|%20|\+|(?:\\{0,7}[\"'])?[ ]?[:=,][ ]?)"
    r"(?:\\{0,7}[\"'])?(?P<secret>[A-Za-z0-9._~+/=%-]{2,}+)"
)

_BASIC: Final = re.compile(
    r"(?i)(?<![a-z])basic(?:[ \t]{1,20}|%20|\+)(?P<secret>[A-Za-z0-9+/=%_-]{6,}+)"
)

#: Words that follow `bearer` where people talk of bearers.
_BEARER_TALK: Final = frozenset(
    {
        "token",
        "tokens",
        "auth",
        "authentication",
        "authorization",
        "scheme",
        "header",
        "credential",
        "credentials",
        "error",
        "format",
        "type",
        "method",
        "prefix",
        "is",
        "was",
        "not",
        "or",
        "and",
        "required",
        "must",
        "string",
        "realm",
    }
)

_AUTHORITY: Final = re.compile(
    r"://(?P<authority>[^\s/?#'\"<>\\]*+)(?P<rest>[^\s'\"<>\\]{0,200})"
)

_QUOTED_URL: Final = re.compile(
    r"(?i)%3A%2F%2F(?P<secret>[\w.~+-]{0,64}%3A[^\s&'\"/]{1,256}?)%40"
)

#: A user's name as long as this is a token.
_MIN_TOKEN_USER_LENGTH: Final = 20


def _spans(text: str, lowered: str) -> Iterator[Span]:
    """Find the secrets of a text, in no order; they may overlap."""
    if len(lowered) != len(text):
        # Some letter became two, and places in one text are none in the other.
        lowered = text.translate(_ASCII_LOWER)
    yield from _named_spans(text, lowered)
    yield from (match.span() for match in _TOKEN.finditer(text))
    if "://" in text and "@" in text:
        yield from _url_spans(text)
    if "%40" in text:
        yield from (match.span("secret") for match in _QUOTED_URL.finditer(text))
    if "eyJ" in text:
        yield from _json_web_token_spans(text)
    if "PRIVATE KEY" in text:
        yield from _private_key_spans(text)
    if "bearer" in lowered:
        yield from _bearer_spans(text)
    if "basic" in lowered:
        for match in _BASIC.finditer(text):
            if not _is_plain(match["secret"]):
                yield match.span("secret")


def _bearer_spans(text: str) -> Iterator[Span]:
    for match in _BEARER.finditer(text):
        word = match["secret"].rstrip(".=").lower()
        if word not in _BEARER_TALK and not word.startswith("realm="):
            yield match.span("secret")


def _url_spans(text: str) -> Iterator[Span]:
    for match in _AUTHORITY.finditer(text):
        authority = match["authority"]
        start = match.start("authority")
        user, at, _ = authority.rpartition("@")
        if at:
            if ":" in user.rstrip(":") or len(user) >= _MIN_TOKEN_USER_LENGTH:
                yield start, start + len(user)
        else:
            # A password with a slash in it ends the authority early. A port does not.
            _, colon, after = authority.rpartition(":")
            rest, at, _ = match["rest"].partition("@")
            if colon and at and after and not after.isdecimal():
                yield start, match.start("rest") + len(rest)


def _json_web_token_spans(text: str) -> Iterator[Span]:
    for match in _JSON_WEB_TOKEN.finditer(text):
        beginning = match["head"].find("eyJ")
        if beginning >= 0:
            yield match.start() + beginning, match.end()


def _private_key_spans(text: str) -> Iterator[Span]:
    at = 0
    while match := _PRIVATE_KEY.search(text, at):
        end = _PRIVATE_KEY_END.search(text, match.end())
        # A key that was cut has no end.
        at = end.end() if end else len(text)
        yield match.start(), at


# --- names in text -------------------------------------------------------------------------

#: The longest beginning of a name before its stem that is looked at.
_MAX_NAME_BEGINNING: Final = 64

_NAME_REST: Final = re.compile(r"[\w.\-]*+")

_ANNOTATION: Final = (
    r"[ ]?(?:str|bytes|int|Any|SecretStr|(?:\w{1,10}\.)?Optional\[\w{1,20}\])"
    r"(?:[ ]?\|[ ]?\w{1,20})?[ ]?=(?!=)"
)

#: What stands between a name and its value.
_SEPARATOR: Final = re.compile(
    r"(?P<quote>\\{0,7}[\"'])?(?:\]|%5[dD])?(?:%22|%27)?[ \t]{0,20}"
    rf"(?P<sign>[=-]>|[:!=+]?==?|:(?!//|:)(?:{_ANNOTATION})?|%(?:25){{0,2}}3[aAdD])"
    r"[ \t]{0,20}(?:\r?\n[ \t]{0,80}(?=[\"'(]))?(?:%20|%22|%27){0,3}"
)

#: More words of a quoted name.
_SPACED_NAME: Final = re.compile(
    r"(?:[ ][\w.\-]{1,40}){1,4}(?P<quote>\\{0,7}[\"'])[ ]?(?P<sign>[:=])[ ]{0,4}"
)

#: ``--name value``, also as items of a list: ``'--name', 'value'``.
_ARGUMENT: Final = re.compile(r"(?:\\{0,7}[\"'],?)?[ \t]{1,20}(?!--)")

#: ``("name", "value")``
_PAIR: Final = re.compile(r"(\\{0,7}[\"'])[ ]?,[ ]{0,4}(?=\1)")

#: ``<name>value</name>``
_ELEMENT: Final = re.compile(r">(?P<secret>[^<>\n]++)</")

#: Words that say a secret: ``the token is abc123``.
_SAID: Final = re.compile(
    r"[\"']?(?:[ ](?:for|of)[ ][^\s:]{1,40})?(?:[ ](?:is|was|value))?[ ]?:?[ ]{1,4}"
    r"(?:(?P<quote>[\"'])|[`(\[]?(?P<word>[^\s\"'`]{8,}+))"
)

_SAYERS: Final = frozenset(
    {
        "token",
        "tokens",
        "password",
        "passwd",
        "secret",
        "secrets",
        "passphrase",
        "credential",
        "credentials",
    }
)

_FILE_SUFFIX: Final = re.compile(
    r".*\.(?:pyx?|pyc|so|c|cc|cpp|h|go|js|java|json|ya?ml|toml|ini|conf|cfg|txt|log|pem|crt"
    r"|root|parquet)"
)

#: Nothing, a type, and a statement where a value might have been.
_NO_SECRETS: Final = re.compile(
    r"(?:None|null|True|true|False|false|str|bytes|int|float|bool|object|dict|list|tuple|Any"
    r"|Optional|raise|return|pass|continue|break|yield)(?![\w.!@#$%^&*+~?-])"
)

_NUMBER: Final = re.compile(r"[\d_.,]+")

_OPTION: Final = re.compile(r"--?[\w.-]+")

_SCHEME: Final = re.compile(
    r"(?i)(?:bearer|basic|digest|negotiate|ntlm|token|apikey|aws4-hmac-sha256)"
    r"(?:[ \t]{1,4}|%20|\+)"
)

_KEY_OF_BEFORE: Final = re.compile(rf"(?i)(?<![a-z])(?:{_KEY_OF}) \Z")


def _named_spans(text: str, lowered: str) -> Iterator[Span]:
    """Find the values whose name, before them in the text, says that they are secrets."""
    at = 0
    while match := _STEM.search(lowered, at):
        start = _name_start(text, match.start(), at)
        stop = _name_rest_end(text, match.end())
        name = text[start:stop]
        span = None
        plain_key = lowered[start:stop] in ("key", "keys")
        if (plain_key and _is_key_of(text, start)) or names_a_secret(name):
            span = _value_of(text, start, stop, name)
        elif plain_key:
            span = _value_of_plain_key(text, start, stop)
        if span:
            yield span
        at = max(stop, span[1]) if span else stop


def _name_start(text: str, start: int, floor: int) -> int:
    """Go back from a stem to the beginning of its name."""
    stem = start
    floor = max(floor, start - _MAX_NAME_BEGINNING)
    while start > floor and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    before = text[start - 1] if start else ""
    if before == "%":
        # The two digits of a quoted character.
        return min(start + 2, stem)
    if before == "\\" and text[start] in "nrt":
        return min(start + 1, stem)
    return start


def _name_rest_end(text: str, stop: int) -> int:
    rest = _NAME_REST.match(text, stop)
    return rest.end() if rest else stop


def _is_key_of(text: str, start: int) -> bool:
    """Tell whether the word before a plain ``key`` says that it opens something."""
    before = text[max(0, start - 16) : start]
    return before.endswith(" ") and _KEY_OF_BEFORE.search(before) is not None


def _value_of(text: str, start: int, stop: int, name: str) -> Span | None:
    """Find the value of a secret's name that stands at start … stop."""
    before = text[start - 1] if start else ""
    if before == "<" and (element := _ELEMENT.match(text, stop)):
        return element.span("secret")
    separator = _SEPARATOR.match(text, stop) or _SPACED_NAME.match(text, stop)
    if separator is None and name.startswith("-"):
        separator = _ARGUMENT.match(text, stop)
    # The first two parts of a Dask key are no name and value.
    if separator is None and before in ("'", '"') and not (start == 2 and text[0] == "("):
        separator = _PAIR.match(text, stop)
    if separator is None:
        return _said(text, stop, name)
    if text.startswith(":", stop) and _FILE_SUFFIX.fullmatch(name):
        # A file and a line in it.
        return None
    span = _value_span(text, separator.end(), to_line_end="cookie" in name.lower())
    value = text[span[0] : span[1]]
    number = _NUMBER.fullmatch(value)
    if not value or (number and (_counts(name) or text.endswith("://", 0, start))):
        return None
    return span


def _value_of_plain_key(text: str, start: int, stop: int) -> Span | None:
    """Find the value of a plain ``key`` in the repr of a mapping, or in a query."""
    separator = _SEPARATOR.match(text, stop)
    if separator is None:
        return None
    if (
        separator["quote"]
        and separator["sign"].startswith(":")
        and _QUOTE.match(text, separator.end())
    ):
        span = _value_span(text, separator.end())
        return None if _DASK_KEY.fullmatch(text[span[0] : span[1]]) else span
    if text[start - 1 : start] in ("?", "&") and separator["sign"] == "=":
        return _value_span(text, separator.end())
    return None


def _said(text: str, stop: int, name: str) -> Span | None:
    """Find a secret that the words of a message give away."""
    if (_words(name) or [""])[-1] not in _SAYERS:
        return None
    said = _SAID.match(text, stop)
    if said is None:
        return None
    if said["quote"]:
        start, end = said.end(), _closing(text, said.end(), 0, said["quote"])
        words = text[start:end]
    else:
        start, words = said.start("word"), said["word"].rstrip(".,;:!?)]}>")
        end = start + len(words)
    is_place = "://" in words or words.startswith(("/", "~/", "./"))
    if end is None or is_place or text.startswith(MARK, start) or _is_plain(words):
        return None
    return start, end


def _is_plain(words: str) -> bool:
    """Tell words of English from what a generator of passwords makes."""
    return len(words) < 8 or (words.replace(" ", "").isalpha() and words[1:].islower())


# --- values in text ------------------------------------------------------------------------

_QUOTE: Final = re.compile(r"[rRbBuUfF]{0,2}(?P<slashes>\\{0,7})(?P<quote>[\"'])")

#: A value without quotes. Of what may end it or be part of it, it ends where something
#: else begins: another parameter, the next item, the rest of the sentence.
_BARE: Final = re.compile(
    r"(?:[^\s,;&'\"\\()\[\]{}<>%]++"
    r"|<(?!/)"
    r"|\\(?![nrt\"'\\])|\\\\(?![\"'\\])"
    r"|%(?!26|22|27)"
    r"|[,;](?=[^\s\w'\"\\]{0,3}\w)(?![\w.-]{1,64}[\"']?[=:])"
    r"|[)\]}>](?=[^\s\w'\"\\]{0,3}\w)"
    r"|&(?!(?:amp;)?[\w.~%+\[\]-]{1,64}=)"
    r"|(?<=\w)['\"](?=\w)"
    r")++"
)

#: What makes a string the first part of a longer expression, or of a word of a shell.
_STRING_CONTINUED: Final = re.compile(
    r"[ \t]{0,4}(?=[rRbBuUfF]{0,2}[\"'])|[ \t]{0,4}[+%][ \t]{0,4}(?=[\w\"'])"
    r"|\.\w{1,20}(?=\()|(?=\w)"
)

_BARE_CONTINUED: Final = re.compile(r"[ \t]{1,4}[+%][ \t]{1,4}(?=[\w\"'])")

#: ``… or "default"``, ``… if … else "default"``
_ALTERNATIVE: Final = re.compile(r"[ \t]+(?:or|and|if|else)[ \t][^\n\"']{0,200}[\"']")

_BRACKET: Final = re.compile(r"[\"'()\[\]{}\n]")


def _value_span(text: str, at: int, *, to_line_end: bool = False) -> Span:
    """Find where a value begins and ends; the span is empty if it is no secret.

    Parameters
    ----------
    text : str
    at : int
        Where it begins; with its quotes, if it has some.
    to_line_end : bool
        A value without quotes holds spaces and ends with its line.
    """
    if text.startswith(MARK, at) or _NO_SECRETS.match(text, at):
        return at, at
    if opening := _QUOTE.match(text, at):
        inside = opening.end()
        closing = _closing(text, inside, len(opening["slashes"]), opening["quote"])
        if closing is None:
            return inside, _line_end(text, inside)
        string_end = closing + len(opening["slashes"]) + 1
        end = _continued(text, string_end, _STRING_CONTINUED)
        if end > string_end:
            return at, end
        if text.startswith(MARK, inside) and inside + len(MARK) == closing:
            return inside, inside
        return _without_scheme(text, inside, closing)
    if scheme := _SCHEME.match(text, at):
        at = scheme.end()
        to_line_end = to_line_end or scheme[0].lower().startswith(("digest", "aws4"))
        if text.startswith(MARK, at):
            return at, at
    if to_line_end:
        return at, _header_end(text, at)
    return at, _continued(text, _bare_end(text, at), _BARE_CONTINUED)


def _without_scheme(text: str, start: int, stop: int) -> Span:
    """Leave the word `Bearer` out of the secret, wherever something follows it."""
    scheme = _SCHEME.match(text, start, stop)
    start = scheme.end() if scheme and scheme.end() < stop else start
    return (start, start) if text[start:stop] == MARK else (start, stop)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


_HEADER_END: Final = re.compile(r"[\n\"']|\\[nr\"']")


def _header_end(text: str, at: int) -> int:
    end = _HEADER_END.search(text, at)
    return end.start() if end else len(text)


def _closing(text: str, at: int, slashes: int, quote: str) -> int | None:
    r"""Find where, within its line, a string ends: at its quote, or the slashes before.

    In the repr of a repr a quote is ``\'``, and one within the string ``\\\'``. So with n
    slashes the string begins, and of m slashes before a quote it is the last n that are
    left if pairs of pairs, each 2(n + 1), are taken away.
    """
    start = at
    while True:
        at = text.find(quote, at)
        if at < 0:
            return None
        before = text[max(start, at - 64) : at]
        if (len(before) - len(before.rstrip("\\"))) % (2 * (slashes + 1)) == slashes:
            at -= slashes
            break
        at += 1
    return None if "\n" in text[start:at] else at


def _bare_end(text: str, at: int) -> int:
    """Find the end of a value that does not begin with a quote."""
    if text[at : at + 1] in ("(", "[", "{"):
        at = _bracket_end(text, at, MAX_BRACKET_LINES)
    while True:
        bare = _BARE.match(text, at)
        at = bare.end() if bare else at
        if text[at : at + 1] not in ("(", "[", "{") or not text[at : at + 1]:
            return at
        at = _bracket_end(text, at, 1)


def _bracket_end(text: str, at: int, lines: int) -> int:
    """Find the end of what stands in brackets, or of the last line if it has none."""
    depth = 0
    while match := _BRACKET.search(text, at):
        sign, at = match[0], match.end()
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if not depth:
                return at
        elif sign == "\n":
            lines -= 1
            if not lines:
                return at - 1
        elif not text[match.start() - 1].isalnum() or text[match.start() - 1] in "rbuf":
            closing = _closing(text, at, 0, sign)
            at = at if closing is None else closing + 1
    return len(text)


def _continued(text: str, end: int, continued: re.Pattern[str]) -> int:
    """Go on to the end of an expression of which a first part ends here."""
    while more := continued.match(text, end):
        at = more.end()
        opening = _QUOTE.match(text, at)
        if opening:
            closing = _closing(text, opening.end(), len(opening["slashes"]), opening["quote"])
            if closing is None:
                return _line_end(text, at)
            end, continued = closing + len(opening["slashes"]) + 1, _STRING_CONTINUED
        else:
            further = _bare_end(text, at)
            if further == end:
                break
            end, continued = further, _BARE_CONTINUED
    return _line_end(text, end) if _ALTERNATIVE.match(text, end) else end
