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
        self._patterns: list[re.Pattern[str]] = []
        for pattern in patterns:
            try:
                self._patterns.append(re.compile(pattern))
            except (re.error, TypeError, RecursionError, OverflowError) as error:
                raise ValueError(f"invalid regular expression {pattern!r}: {error}") from error
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
        spans: list[Span] = []
        if _SUSPECT.search(lowered):
            spans = list(_named_spans(text, lowered))
            for part, pattern in _SHAPE_PATTERNS:
                if part in lowered:
                    spans += [match.span("secret") for match in pattern.finditer(text)]
        for pattern in self._patterns:
            spans += [match.span() for match in pattern.finditer(text)]
        # Spans that overlap or touch are one secret with one mark.
        joined: list[list[int]] = []
        for start, stop in sorted(spans):
            if joined and start <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], stop)
            else:
                joined.append([start, stop])
        pieces, at = [], 0
        for start, stop in joined:
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
            decides = not isinstance(name, str) or (
                name == "value" or names_a_secret(name) or _is_plain_key(name)
            )
            if new_name is name and not decides:
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


# --- shapes --------------------------------------------------------------------------------
#
# Possessive quantifiers, atomic groups and lookbehinds at the start of a word keep each
# search linear: no part of a text is read again from each of its positions.

#: Every name of a secret contains one of these. They are searched in lower case, because an
#: expression that ignores case is several times slower.
_STEM: Final = "p(?:ass|wd|rox)|token|s(?:ecret|ig)|c(?:red|ookie)|bearer|auth|key|jwt|macaroon"

#: A text in lower case without a match contains no secret. Common first letters are grouped,
#: which halves the time of the search.
_SUSPECT: Final = re.compile(
    rf"{_STEM}|@|%40|basic|eyj|a(?:kia|sia|iza)|g(?:h[pousr]_|ithub_pat_|l[a-z]{{2,5}}-)"
    r"|x(?:ox|app-)|[rs]k_(?:live|test)|ya29|hf_|pypi-|mda|sk-(?<!\wsk-)"
    r"|://[^\s/]*:(?!\d+(?:[/\s]|\Z))"
)

#: Secrets by their shape, by a part of the text in lower case without which none matches.
_SHAPES: Final = {
    # Tokens of common services. `sk-` is not the end of `task-`, nor before a hash of Dask.
    "": r"""(?P<secret>
        A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])
        |gh[pousr]_[A-Za-z0-9]{20,}+ |github_pat_\w{20,}+
        |gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[\w.-]{16,}+
        |xox[a-z]-[\w-]{10,}+ |xapp-[\w-]{10,}+ |[rs]k_(?:live|test)_\w{10,}+
        |AIza[\w-]{30,}+ |ya29\.[\w-]{16,}+ |hf_[A-Za-z0-9]{30,}+ |pypi-[\w-]{50,}+
        |MDA[A-Za-z0-9+/_-]{40,}+={0,2}
        |sk-(?<![\w-]sk-)(?![0-9a-f]{32}(?![\w-]))[\w-]{20,}+)""",
    # JSON web tokens.
    "eyj": r"""(?<![\w-])(?>[\w-]*?(?=eyJ))
        (?P<secret>[\w-]{10,}+\.[\w-]{5,}+(?:\.[\w-]*+){0,3})""",
    # A key that was cut has no end line.
    "private key": r"""(?P<secret>-----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
        (?s:.*?-----END[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----|.*))""",
    # User and password in a URL, or a user name of 20 characters, which is a token. A password
    # with a slash ends the authority early. A prefix or group may end within the password,
    # since Dask cuts keys at hyphens. A port may end a sentence.
    "://": r"""://(?P<secret>
        (?:[^\s/?\#'"<>\\:]*+:++[^\s/?\#'"<>\\:][^\s/?\#'"<>\\]*|[^\s/?\#'"<>\\]{20,})(?=@)
        |(?!\[)[^\s/?\#'"<>\\@]*:(?!\d*+[^\w\s/?\#'"<>\\@:]*+(?:[\s/?\#'"<>\\]|\Z)|\{)
        [^\s/?\#'"<>\\@:]*+(?![^\s/?\#'"<>\\])
        (?:[^\s'"<>\\@]{0,200}(?=@))?)""",
    "%40": r"""(?i:%3A%2F%2F)(?P<secret>[\w.~+-]{0,64}%3[aA][^\s&'"/]{1,256}?)%40""",
    # Credentials of HTTP, but not the words in ordinary sentences.
    "bearer": r"""(?i)(?<![a-z])bearer
        (?:[ \t]{1,20}|%20|\+|(?:\\{0,7}["'])?[ ]?[:=,][ ]?)(?:\\{0,7}["'])?
        (?!realm=|(?:tokens?|auth|authentication|authorization|scheme|header|credentials?
        |error|format|type|method|prefix|is|was|not|or|and|required|must|string|realm)
        [.=]*+(?![\w.~+/=%-]))
        (?P<secret>[A-Z0-9._~+/=%-]{2,}+)""",
    "basic": r"""(?<![A-Za-z])(?i:basic)(?:[ \t]{1,20}|%20|\+)
        (?![A-Za-z][a-z]*+(?![A-Za-z0-9+/=%_-]))(?P<secret>[A-Za-z0-9+/=%_-]{8,}+)""",
}
_SHAPE_PATTERNS: Final = [
    (part, re.compile(shape, re.VERBOSE)) for part, shape in _SHAPES.items()
]


# --- names in text -------------------------------------------------------------------------

#: A name with a stem, and the text between it and its value, in lower case.
_NAME: Final = re.compile(
    # An escaped line break or a quoted character is not part of the name. A quote behind
    # the first bracket begins a key of Dask.
    r"(?:(?<!\A\()(?P<before>\\{0,7}[\"'])|(?<=\\)(?:[nr]|t(?!oken))"
    r"|(?<=%)[0-9a-f]{2}|(?<![\w.-]))"
    rf"(?P<name>(?:(?:{_KEY_OF})[ ](?=key))?(?P<dash>-)?"
    rf"(?>[\w.-]*?(?:{_STEM}))[\w.-]*+)"
    r"(?:"
    # name=value, name: type = value, "name": value, ["name"] = value, name%3Dvalue
    r"(?P<quote>\\{0,7}[\"'])?(?:\]|%5d)?(?:%22|%27)?[ \t]{0,20}"
    r"(?P<sign>[=-]>|[:!=+]?==?|:(?!//|:)(?:[ ]?(?:str|bytes|int|any|secretstr|"
    r"(?:\w{1,10}\.)?optional\[\w{1,20}\])(?:[ ]?\|[ ]?\w{1,20})?[ ]?=(?!=))?"
    r"|%(?:25){0,2}3[ad])"
    r"[ \t]{0,20}(?:\r?\n[ \t]{0,80}(?=[\"'(]))?(?:%20|%22|%27){0,3}"
    # "name of it": value
    r"|(?:[ ][\w.-]{1,40}){1,4}\\{0,7}[\"'][ ]?[:=][ ]{0,4}"
    # --name value, '--name', 'value'
    r"|(?(dash)(?:\\{0,7}[\"'],?)?[ \t]{1,20}(?!--)|(?!))"
    # "name", "value"
    r"|(?(before)(?P<pair>\\{0,7}[\"'])[ ]?,[ ]{0,4}(?=(?P=pair))|(?!))"
    # <name>value</name>
    r"|>(?P<element>[^<>\n]++)</"
    # the name is value
    r"|[\"']?(?:[ ](?:for|of)[ ][^\s:]{1,40})?(?:[ ](?:is|was|value))?[ ]?:?[ ]{1,4}"
    r"(?:(?P<mark>[\"'])(?P<phrase>[^\n]*?)(?P=mark)|[`(\[]?(?P<word>[^\s\"'`]{8,}+))"
    r")"
)

#: A replaced value, no value, a type, and a statement where a value might have been.
_NOTHING: Final = (
    rf"{MARK}|(?:None|null|True|true|False|false|str|bytes|int|float|bool|object|dict|list"
    r"|tuple|Any|Optional|raise|return|pass|continue|break|yield)(?![\w.!@#$%^&*+~?-])"
)

#: A value without quotes ends where something else begins: another parameter, the next item,
#: the rest of the sentence.
_BARE: Final = (
    r"(?:[^\s,;&'\"\\()\[\]{}<>%]++"
    r"|<(?!/)"
    r"|\\(?![nrt\"'\\])|\\\\(?![\"'\\])"
    r"|%(?!26|22|27)"
    r"|[,;](?=[^\s\w'\"\\]{0,3}\w)(?![\w.-]{1,64}[\"']?[=:])"
    r"|[)\]}>](?=[^\s\w'\"\\]{0,3}\w)"
    r"|&(?!(?:amp;)?[\w.~%+\[\]-]{1,64}=)"
    r"|(?<=\w)['\"](?=\w))"
)

#: Brackets with up to four levels. Of deeper or unclosed ones, 20 lines are replaced.
_BRACKETS = "(?!)"
for _ in range(4):
    _BRACKETS = (
        r"[(\[{](?:[^()\[\]{}\"'\\]++|\\.|\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'"
        rf"|[\"'\\]|{_BRACKETS})*+[)\]}}]"
    )

_ALTERNATIVE: Final = r"[ \t]+(?:or|and|if|else)[ \t][^\n\"']{0,200}[\"']"

_SCHEME: Final = r"(?i:bearer|basic|digest|negotiate|ntlm|token|apikey)(?:[ \t]{1,4}|%20|\+)"
_LINE: Final = r"(?:[^\n\"'\\]|\\(?![nr\"']))++"

#: A value. The last group that matched is the secret.
_VALUE: Final = re.compile(
    rf"(?P<nothing>{_NOTHING})"
    # A string. In the repr of a repr, its quotes and those within it have more backslashes.
    # A string that is part of an expression is replaced up to the end of the line.
    r"|[rRbBuUfF]{0,2}(?P<slashes>\\{0,7})(?P<mark>[\"'])"
    rf"(?:{_SCHEME})?"
    r"(?P<inside>(?:(?P=slashes){2}\\[\\\"']|(?!(?P=slashes)(?P=mark))[^\n])*+)"
    r"(?:(?P=slashes)(?P=mark)(?P<rest>(?:[ \t]{0,4}(?:[rRbBuUfF]{0,2}[\"']"
    rf"|[+%][ \t]{{0,4}}[\w\"'])|\.\w{{1,20}}\(|{_ALTERNATIVE})[^\n]*|(?=\w){_BARE}++)?)?"
    rf"|(?i:digest|aws4-hmac-sha256)[ \t]{{1,4}}(?P<credentials>{_LINE})"
    rf"|(?:{_SCHEME})?(?P<bare>(?:{MARK}|{_BARE}|{_BRACKETS}|[(\[{{](?:[^\n]*\n){{0,19}}[^\n]*)++"
    rf"(?:(?:[ \t]{{1,4}}[+%][ \t]{{1,4}}[\w\"']|{_ALTERNATIVE})[^\n]*)?)"
)

#: The value of a cookie without quotes contains spaces and ends with its line.
_COOKIES: Final = re.compile(
    rf"(?!{_NOTHING}|[rRbBuUfF]{{0,2}}\\{{0,7}}[\"']|[(\[{{])(?P<line>{_LINE})"
)

#: In ``the token is abc123`` a secret follows a name that ends with one of these words.
_ANNOUNCING: Final = frozenset({
    "token", "tokens", "password", "passwd", "secret", "secrets", "passphrase", "credential",
    "credentials",
})  # fmt: skip

#: A file; a line number follows.
_FILE: Final = re.compile(
    r".*\.(?:pyx?|pyc|so|c|cc|cpp|h|go|js|java|json|ya?ml|toml|ini|conf|cfg|txt|log|pem|crt"
    r"|root|parquet)"
)

_NUMBER: Final = re.compile(r"[\d_.,]+")

_OPTION: Final = re.compile(r"--?[\w.-]+")


def _named_spans(text: str, lowered: str) -> Iterator[Span]:
    """Find the values of names in the text that denote secrets."""
    if len(lowered) != len(text):
        # Lower case of some letters has two characters, which would shift all positions.
        lowered = re.sub("[A-Z]+", lambda match: match[0].lower(), text)
    at = 0
    while match := _NAME.search(lowered, at):
        at = match.end("name")
        name = text[match.start("name") : at]
        if name.lower() in ("key", "keys"):
            # A secret in the repr of a mapping, and in a query.
            before = text[max(0, match.start("name") - 1) : match.start("name")]
            if not (match["quote"] and match["sign"] == ":") and before not in ("?", "&"):
                continue
        elif not names_a_secret(name):
            continue
        if match["element"]:
            span = match.span("element")
        elif match["phrase"] or match["word"]:
            start, stop = match.span("phrase" if match["phrase"] else "word")
            words = text[start:stop]
            # Messages are kept: English words, files and URLs are not secrets.
            is_place = "://" in words or words.startswith(("/", "~/", "./", MARK))
            words = words.rstrip(".,;:!?)]}>")
            is_english = words.replace(" ", "").isalpha() and words[1:].islower()
            if len(words) < 8 or is_english or is_place or _words(name)[-1] not in _ANNOUNCING:
                continue
            span = start, start + len(words)
        else:
            cookies = "cookie" in name.lower() and _COOKIES.match(text, match.end())
            value = cookies or _VALUE.match(text, match.end())
            if not value or not value.lastgroup or value.lastgroup == "nothing":
                continue
            start, stop = value.span(value.lastgroup)
            if value.lastgroup == "rest":
                start = value.start()
            span, secret = (start, stop), text[start:stop]
            is_file = match["sign"] == ":" and _FILE.fullmatch(name)
            is_dask_key = name.lower() in ("key", "keys") and (
                _DASK_KEY.fullmatch(secret) or (match["quote"] and value.lastgroup == "bare")
            )
            # A number is a count, or the port of a host.
            is_number = _NUMBER.fullmatch(secret) and (
                _counts(name) or text.endswith("://", 0, match.start("name"))
            )
            if is_file or is_dask_key or is_number:
                continue
        at = max(at, span[1])
        yield span
