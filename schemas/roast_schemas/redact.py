"""Replace secrets in records. This is the only redactor of recordings and of imports.

A :class:`Redactor` receives each record immediately before it is encoded and applies the
same rules to every string in it, names of mappings included. A key is therefore redacted
identically in all records that contain it, and joins on it still work.

Two rules find secrets:

* By name: the name is the key of a mapping, or precedes a value in text, as in
  ``password="…"``, ``'token': '…'``, ``--api-key …`` and ``?X-Amz-Signature=…``. Names are
  compared word by word, so ``n_tokens``, ``monkey`` and ``author`` are not secrets.
* By shape: ``user:password@`` in a URL, JSON web tokens, private keys, and the tokens of
  common services.

Only the secret is replaced: host, path and name remain. In ambiguous cases the longer text
is replaced. All searches take time linear in the length of the text, adversarial text
included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, Final

#: Replacement of a secret.
MARK: Final = "<redacted>"

#: Start and stop of a secret within a text.
Span = tuple[int, int]

#: Longest text in the cache of clean texts, in characters.
MAX_CACHED_LENGTH: Final = 256

#: Number of cached texts after which the cache is cleared: about 10 MB.
MAX_CACHED: Final = 65_536

#: Values nested deeper than this are replaced unread.
MAX_DEPTH: Final = 100

#: Lines after which an unclosed bracket is assumed to end.
MAX_BRACKET_LINES: Final = 20

#: Fields with mappings of the user, in which a plain ``key`` names a secret. Elsewhere it is
#: Dask's.
_USER_FIELDS: Final = frozenset({"usermeta", "annotations"})

#: Keys usually end in Dask's hash and an index.
_HASH_AND_INDEX: Final = "0123456789abcdef)]', ."


class Redactor:
    """Replaces secrets in records.

    Parameters
    ----------
    patterns : iterable of str
        Further regular expressions; their matches are replaced.

    Attributes
    ----------
    replaced : int
        Number of replacements so far.

    Raises
    ------
    ValueError
        If a pattern is not a valid regular expression.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = tuple(map(_compiled, patterns))
        self._clean: set[str] = set()
        self._clean_names: set[str] = set()
        self.replaced = 0

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record without its secrets; it may be changed in place.

        Field names and kinds are those of the schema and remain unchanged.
        """
        # Most records contain only texts that were seen before. This runs for every record
        # of a trace, so it avoids calls and copies.
        clean = self._clean
        for field, value in record.items():
            kind = type(value)
            if kind is str:
                if value not in clean and field != "kind" and not self._is_clean_text(value):
                    return self._redacted(record)
            elif kind in _CONTAINERS and not self._is_clean(value, 4):
                return self._redacted(record)
        return self._redacted(record) if record.get("kind") == "environment" else record

    def text(self, text: str) -> str:
        """Return the text without its secrets."""
        if text in self._clean:
            return text
        lowered = text.lower()
        spans = list(_spans(text, lowered)) if _SUSPECT.search(lowered) else []
        for pattern in self._patterns:
            spans += [match.span() for match in pattern.finditer(text)]
        pieces, at = [], 0
        for start, stop in _merged(spans):
            if start < stop and text[start:stop] != MARK:
                pieces += [text[at:start], MARK]
                at = stop
                self.replaced += 1
        if pieces:
            return "".join(pieces) + text[at:]
        # An option such as --password decides about the item that follows it.
        if not text.startswith("-"):
            _remember(self._clean, text)
        return text

    def _is_clean_text(self, text: str) -> bool:
        """Return False if a text may contain a secret. Fast, and never wrongly True."""
        if self._patterns:
            return False
        # The search is the expensive step, so it leaves out the hash and index of a key.
        head = text.rstrip(_HASH_AND_INDEX)
        if not head.endswith("-"):
            head = text
        if head not in self._clean:
            if _SUSPECT.search(head.lower()):
                return False
            _remember(self._clean, head)
        _remember(self._clean, text)
        return True

    def _is_clean(self, container: Any, depth: int) -> bool:
        """Return False if a dict, list or tuple may contain a secret."""
        clean = self._clean
        if type(container) is dict:
            if not self._clean_names.issuperset(container):
                return False
            container = container.values()
        for item in container:
            kind = type(item)
            if kind is str:
                if item not in clean and not self._is_clean_text(item):
                    return False
            elif kind in _CONTAINERS:
                if not depth or not self._is_clean(item, depth - 1):
                    return False
            elif kind not in _NUMBERS:
                return False
        return True

    def _redacted(self, record: dict[str, Any]) -> dict[str, Any]:
        """Redact a record field by field."""
        is_fact = record.get("kind") == "environment"
        hides = is_fact and (
            names_a_secret(str(record.get("section"))) or _names_pair(record, users=True)
        )
        for field, value in record.items():
            if field == "value" and hides:
                record[field] = self._whole(value)
            elif field == "keys" and type(value) is dict:
                # Sizes by key. A key may contain the word token; its size is no secret.
                sizes: dict[str, Any] = {}
                for key, nbytes in value.items():
                    sizes[_unused(self._value(key), sizes)] = nbytes
                record[field] = sizes
            elif field != "kind":
                users = field in _USER_FIELDS or (is_fact and field == "value")
                record[field] = self._named(field, value, users=users, depth=0)
        return record

    def _value(self, value: Any, *, users: bool = False, depth: int = 0) -> Any:
        """Redact a value whose name, if any, is harmless."""
        if isinstance(value, str):
            return self.text(value)
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

    def _mapping(self, mapping: dict[Any, Any], *, users: bool, depth: int) -> dict[Any, Any]:
        hides = _names_pair(mapping, users=users)
        redacted: dict[Any, Any] = {}
        for name, item in mapping.items():
            if name == "value" and hides:
                value = self._whole(item)
            else:
                value = self._named(name, item, users=users, depth=depth)
            new_name = self._value(name)
            if new_name is name and not _decides(name):
                _remember(self._clean_names, name)
            redacted[_unused(new_name, redacted)] = value
        return redacted

    def _sequence(
        self, items: list[Any] | tuple[Any, ...], *, users: bool, depth: int
    ) -> list[Any]:
        """Redact the items; one that follows ``--password`` is the value of that option."""
        redacted, after_option = [], False
        for item in items:
            if isinstance(item, str):
                hides = after_option and not item.startswith("--")
                redacted.append(self._whole(item) if hides else self.text(item))
                is_option = _OPTION.fullmatch(item) is not None
                after_option = is_option and names_a_secret(item)
            else:
                redacted.append(self._value(item, users=users, depth=depth))
        return redacted

    def _named(self, name: Any, value: Any, *, users: bool, depth: int) -> Any:
        """Redact a value that may be a secret by its name."""
        if isinstance(name, str) and (
            names_a_secret(name) or (users and isinstance(value, str) and _is_plain_key(name))
        ):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and _counts(name)):
                return self._whole(value)
        return self._value(value, users=users, depth=depth)

    def _whole(self, value: Any) -> Any:
        """Replace a value; an empty one, or one that is replaced already, remains."""
        if value is None or isinstance(value, bool) or value in ("", MARK, [], {}, ()):
            return value
        self.replaced += 1
        return MARK


_CONTAINERS: Final = frozenset({dict, list, tuple})
_NUMBERS: Final = frozenset({float, int, bool, type(None)})


def _remember(texts: set[str], text: str) -> None:
    if isinstance(text, str) and len(text) <= MAX_CACHED_LENGTH:
        if len(texts) >= MAX_CACHED:
            texts.clear()
        texts.add(text)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise ValueError(f"invalid regular expression {pattern!r}: {error}") from error


def _merged(spans: list[Span]) -> Iterator[Span]:
    """Join spans that overlap or touch, so that each secret has one mark."""
    spans.sort()
    joined: list[list[int]] = []
    for start, stop in spans:
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], stop)
        else:
            joined.append([start, stop])
    return ((start, stop) for start, stop in joined)


def _unused(name: Any, mapping: dict[Any, Any]) -> Any:
    """Return the name, with a number if another one became equal by redaction."""
    if name not in mapping or not isinstance(name, str):
        return name
    numbered = (f"{name} {number}" for number in range(2, len(mapping) + 3))
    return next(new for new in numbered if new not in mapping)


# --- names ---------------------------------------------------------------------------------

#: Words of camelCase: ``AWSAccessKeyId`` is aws, access, key, id.
_CAMEL_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_LETTERS: Final = re.compile(r"[A-Za-z]+")

#: Words before ``key`` that make it a cryptographic key or a password.
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

_QUALIFIER: Final = re.compile(_KEY_OF)

#: With only these words beside it, ``key`` is a key of Dask.
_DASK_KEY_WORDS: Final = frozenset({
    "dask", "task", "tasks", "name", "prefix", "group", "split", "dependency",
    "dependencies", "dependent", "collision", "collisions", "in", "memory", "report",
})  # fmt: skip

#: ``KeyError`` and ``ProxyError`` are names of errors, not of a key and a proxy.
_ERROR_WORDS: Final = frozenset({
    "error", "errors", "exception", "exceptions", "warning", "warnings",
})  # fmt: skip

#: A number whose name contains one of these is a count.
_COUNT_WORDS: Final = frozenset({
    "n", "num", "nb", "number", "count", "counts", "max", "min", "total", "len", "length",
    "size", "limit", "rate", "mean", "avg",
})  # fmt: skip

#: The text of a tuple, or a text that ends with one of Dask's hashes: a key of Dask.
_DASK_KEY: Final = re.compile(
    r"\(.*|.*-(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.DOTALL
)


@lru_cache(maxsize=4_096)
def names_a_secret(name: str) -> bool:
    """Return whether a name denotes a secret; a plain ``key`` does not."""
    # The ends of a very long name are enough, and keep the search short.
    name = name if len(name) <= 400 else name[:200] + " " + name[-200:]
    words = _words(name)
    if not words or words[-1] in _ERROR_WORDS or _DASK_KEY.fullmatch(name):
        return False
    candidates = {*words, *(run.lower() for run in _LETTERS.findall(name))}
    if any(map(_SECRET_WORD.fullmatch, candidates)):
        return True
    beside = {word for word in words if word not in ("key", "keys")}
    if "key" in words and beside and not beside <= _DASK_KEY_WORDS:
        # `n_key` may be a count: the value decides, see `_counts`.
        return True
    return "keys" in words and any(map(_QUALIFIER.fullmatch, beside))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _CAMEL_WORDS.findall(name)]


def _is_plain_key(name: str) -> bool:
    return _words(name) == ["key"]


def _counts(name: str) -> bool:
    return not _COUNT_WORDS.isdisjoint(_words(name))


def _names_pair(mapping: dict[Any, Any], *, users: bool) -> bool:
    """Return whether ``name`` denotes that the ``value`` beside it is a secret."""
    name = mapping.get("name")
    if "value" not in mapping or not isinstance(name, str):
        return False
    value = mapping["value"]
    if isinstance(value, (int, float)) and _counts(name):
        return False
    return names_a_secret(name) or (users and isinstance(value, str) and _is_plain_key(name))


def _decides(name: Any) -> bool:
    """Return whether a name may decide that a value is a secret."""
    return not isinstance(name, str) or (
        name == "value" or names_a_secret(name) or _is_plain_key(name)
    )


# --- shapes --------------------------------------------------------------------------------

#: Every name of a secret contains one of these. They are searched in lower case, because an
#: expression that ignores case is several times slower.
_STEM: Final = re.compile(
    "p(?:ass|wd|rox)|token|s(?:ecret|ig)|c(?:red|ookie)|bearer|auth|key|jwt|macaroon"
)

#: Tokens of common services. The possessive tails keep the search linear.
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
    # Not the end of `task-`, and not before a hash of Dask.
    r"|sk-(?<![\w-]sk-)(?![0-9a-f]{32}(?![\w-]))[\w-]{20,}+"
)

#: A text in lower case without a match contains no secret. Common first letters are grouped,
#: which halves the time of the search.
_SUSPECT: Final = re.compile(
    rf"{_STEM.pattern}|@|%40|basic|eyj|a(?:kia|sia|iza)|g(?:h[pousr]_|ithub_pat_|l[a-z]{{2,5}}-)"
    r"|x(?:ox|app-)|[rs]k_(?:live|test)|ya29|hf_|pypi-|mda|sk-(?<!\wsk-)|://[^\s/]*:(?!\d+(?:[/\s]|\Z))"
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

#: Words after `bearer` in ordinary sentences.
_AFTER_BEARER: Final = frozenset({
    "token", "tokens", "auth", "authentication", "authorization", "scheme", "header",
    "credential", "credentials", "error", "format", "type", "method", "prefix", "is", "was",
    "not", "or", "and", "required", "must", "string", "realm",
})  # fmt: skip

_AUTHORITY: Final = re.compile(
    r"://(?P<authority>[^\s/?#'\"<>\\]*+)(?P<rest>[^\s'\"<>\\]{0,200})"
)

#: A port, also one at the end of a sentence, or a placeholder.
_PORT: Final = re.compile(r"\d*\W*|\{.*")

_QUOTED_URL: Final = re.compile(
    r"(?i)%3A%2F%2F(?P<secret>[\w.~+-]{0,64}%3A[^\s&'\"/]{1,256}?)%40"
)

#: A user name of this length is a token.
_MIN_TOKEN_USER_LENGTH: Final = 20


def _spans(text: str, lowered: str) -> Iterator[Span]:
    """Find the secrets of a text, in any order; they may overlap."""
    if len(lowered) != len(text):
        # Lower case of some letters has two characters, which would shift all positions.
        lowered = text.translate(_ASCII_LOWER)
    yield from _named_spans(text, lowered)
    yield from (match.span() for match in _TOKEN.finditer(text))
    if "://" in text:
        yield from _url_spans(text)
    if "%40" in text:
        yield from (match.span("secret") for match in _QUOTED_URL.finditer(text))
    if "eyJ" in text:
        for match in _JSON_WEB_TOKEN.finditer(text):
            if (start := match["head"].find("eyJ")) >= 0:
                yield match.start() + start, match.end()
    if "PRIVATE KEY" in text:
        yield from _private_key_spans(text)
    if "bearer" in lowered:
        for match in _BEARER.finditer(text):
            word = match["secret"].rstrip(".=").lower()
            if word not in _AFTER_BEARER and not word.startswith("realm="):
                yield match.span("secret")
    if "basic" in lowered:
        for match in _BASIC.finditer(text):
            if not _is_plain(match["secret"]):
                yield match.span("secret")


def _url_spans(text: str) -> Iterator[Span]:
    for match in _AUTHORITY.finditer(text):
        authority = match["authority"]
        start = match.start("authority")
        user, at, _ = authority.rpartition("@")
        if at:
            if ":" in user.rstrip(":") or len(user) >= _MIN_TOKEN_USER_LENGTH:
                yield start, start + len(user)
            continue
        host, colon, port = authority.rpartition(":")
        if colon and host[:1] != "[" and not _PORT.fullmatch(port):
            # A password with a slash ends the authority early. A prefix or group may end
            # within the password, since Dask cuts keys at hyphens.
            rest, at, _ = match["rest"].partition("@")
            yield start, match.start("rest") + len(rest) if at else match.end("authority")


def _private_key_spans(text: str) -> Iterator[Span]:
    at = 0
    while match := _PRIVATE_KEY.search(text, at):
        end = _PRIVATE_KEY_END.search(text, match.end())
        # A key that was cut has no end line.
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

_SAYERS: Final = frozenset({
    "token", "tokens", "password", "passwd", "secret", "secrets", "passphrase", "credential",
    "credentials",
})  # fmt: skip

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
