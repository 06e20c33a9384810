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

#: Longest text in the cache of clean texts, and number of texts after which it is cleared:
#: about 10 MB.
MAX_CACHED_LENGTH: Final = 256
MAX_CACHED: Final = 65_536

#: Values nested deeper than this are replaced without being searched.
MAX_DEPTH: Final = 100

#: Fields with mappings of the user, in which a plain ``key`` names a secret. Elsewhere it is
#: Dask's.
_USER_FIELDS: Final = frozenset({"usermeta", "annotations"})

#: Keys usually end in Dask's hash and an index.
_HASH_AND_INDEX: Final = "0123456789abcdef)]', ."

_OPTION: Final = re.compile(r"--?[\w.-]+")

_CONTAINERS: Final = frozenset({dict, list, tuple})
_NUMBERS: Final = frozenset({float, int, bool, type(None)})


class Redactor:
    """Replaces secrets in records.

    Parameters
    ----------
    patterns : iterable of str
        Further regular expressions, whose matches are replaced. An invalid one is a
        ``ValueError``.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns: list[re.Pattern[str]] = []
        for pattern in patterns:
            try:
                self._patterns.append(re.compile(pattern))
            except (re.error, TypeError, RecursionError, OverflowError) as error:
                raise ValueError(f"invalid regular expression {pattern!r}: {error}") from error
        # Names in mappings have a separate cache, because they also decide about values.
        self._clean: set[str] = set()
        self._clean_names: set[str] = set()
        #: Number of replacements so far.
        self.replaced = 0

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record without its secrets; it may be changed in place.

        Field names and kinds are those of the schema and remain unchanged.
        """
        is_fact = record.get("kind") == "environment"
        # Most records contain only texts that were seen before, and need no copies.
        if not is_fact and self._is_clean(record.values(), 5):
            return record
        section = str(record.get("section"))
        for field, value in record.items():
            if is_fact and field == "value":
                name = section if names_a_secret(section) else record.get("name")
                record[field] = self._value(value, name, users=True)
            elif field == "keys" and type(value) is dict:
                # Sizes by key. A key may contain the word token; its size is not a secret.
                sizes: dict[str, Any] = {}
                for key, nbytes in value.items():
                    sizes[_unused(self._value(key), sizes)] = nbytes
                record[field] = sizes
            elif field != "kind":
                record[field] = self._value(value, field, users=field in _USER_FIELDS)
        return record

    def text(self, text: str) -> str:
        """Return the text without its secrets."""
        if text in self._clean:
            return text
        lowered = text.lower()
        spans = list(_spans(text, lowered)) if _SUSPECT.search(lowered) else []
        for pattern in self._patterns:
            spans += [match.span() for match in pattern.finditer(text)]
        # Spans that overlap or touch are one secret with one mark.
        joined: list[Span] = []
        for start, stop in sorted(spans):
            if joined and start <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(joined[-1][1], stop)
            else:
                joined.append((start, stop))
        pieces, at = [], 0
        for start, stop in joined:
            if text[start:stop] not in ("", MARK):
                pieces += [text[at:start], MARK]
                at = stop
        self.replaced += len(pieces) // 2
        # A name such as --password decides about the item that follows it.
        if not pieces and not names_a_secret(text):
            _remember(self._clean, text)
        return "".join(pieces) + text[at:]

    def _is_clean(self, container: Any, depth: int) -> bool:
        """Return False if a container may contain a secret, and never wrongly True.

        This runs for every record.
        """
        clean = self._clean
        if type(container) is dict:
            if not self._clean_names.issuperset(container):
                return False
            container = container.values()
        for item in container:
            kind = type(item)
            if kind is str:
                if item in clean:
                    continue
                if self._patterns:
                    return False
                # The search is the expensive step, so it leaves out hash and index of a key.
                head = item.rstrip(_HASH_AND_INDEX)
                head = head if head.endswith("-") else item
                if head not in clean:
                    if _SUSPECT.search(head.lower()):
                        return False
                    _remember(clean, head)
                _remember(clean, item)
            elif kind not in _NUMBERS and not (
                depth and kind in _CONTAINERS and self._is_clean(item, depth - 1)
            ):
                return False
        return True

    def _value(self, value: Any, name: Any = "", users: bool = False, depth: int = 0) -> Any:
        """Redact a value of the user or of Dask, all of it if its name denotes a secret."""
        if name and isinstance(name, str) and _hides(name, value, users):
            return self._whole(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (bytes, bytearray)):
            return f"<{len(value)} bytes>"
        if not isinstance(value, (dict, list, tuple)):
            return value
        if depth >= MAX_DEPTH:
            return self._whole(value)
        if isinstance(value, dict):
            redacted: dict[Any, Any] = {}
            item_name: Any
            for key, item in value.items():
                new_key, item_name = key, ""
                if key not in self._clean_names:
                    new_key = self._value(key)
                    # In {"name": "TOKEN", "value": "…"} the name denotes the value.
                    item_name = value.get("name") if key == "value" else key
                    decides = key == "value" or _hides(str(key), "", users=True)
                    if new_key is key and not decides:
                        _remember(self._clean_names, key)
                new_item = self._value(item, item_name, users, depth + 1)
                redacted[_unused(new_key, redacted)] = new_item
            return redacted
        items: list[Any] = []
        option = ""
        for item in value:
            if not isinstance(item, str):
                match item:
                    # A pair of name and value, as in a list of headers.
                    case [str(header), secret] if _hides(header, secret, users=False):
                        items.append([self.text(header), self._whole(secret)])
                    case _:
                        items.append(self._value(item, option, users, depth + 1))
                continue
            # An item that follows --password is the value of that option.
            hides = option and not item.startswith("--")
            items.append(self._whole(item) if hides else self.text(item))
            option = item if _OPTION.fullmatch(item) and names_a_secret(item) else ""
        return items

    def _whole(self, value: Any) -> Any:
        """Replace a value; an empty one, or one that is replaced already, remains."""
        if value is None or isinstance(value, bool) or value in ("", MARK, [], {}, ()):
            return value
        self.replaced += 1
        return MARK


def _remember(texts: set[str], text: str) -> None:
    if isinstance(text, str) and len(text) <= MAX_CACHED_LENGTH:
        if len(texts) >= MAX_CACHED:
            texts.clear()
        texts.add(text)


def _unused(name: Any, mapping: dict[Any, Any]) -> Any:
    """Return the name, with a number if another one became equal by redaction."""
    new, number = name, 2
    while new in mapping and isinstance(name, str):
        new, number = f"{name} {number}", number + 1
    return new


# --- names ---------------------------------------------------------------------------------

#: A word of camelCase: ``AWSAccessKeyId`` is aws, access, key, id.
_CAMEL_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

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
_DASK_KEY_WORD: Final = re.compile(
    "dask|tasks?|name|prefix|group|split|dependen(?:t|cy|cies)|collisions?|in|memory|report"
)

#: ``KeyError`` and ``ProxyError`` are names of errors, not of a key and a proxy.
_ERROR_WORD: Final = re.compile("(?:error|exception|warning)s?")

#: A number whose name contains one of these is a count.
_COUNT_WORD: Final = re.compile(
    "n|num|nb|number|counts?|max|min|total|len|length|size|limit|rate|mean|avg"
)

#: In analyses, these are mostly events that pass a selection, and signal.
_PASS_OR_SIGNAL: Final = frozenset({"pass", "sig", "signature", "signatures"})

#: Variables with a folder, though ``pwd`` is otherwise a password.
_FOLDERS: Final = frozenset({"PWD", "OLDPWD"})

#: Words before ``pass`` that make it a password, and after it.
_LOGIN_WORD: Final = re.compile(
    "db|user|ssh|keys?|my|admin|root|login|account|mail|smtp|ftp|http|(?:my|pg|postgre)?sql"
    "|phrase|word|wd|code|hash|salt"
)

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
    if not words or _ERROR_WORD.fullmatch(words[-1]) or _DASK_KEY.fullmatch(name):
        return False
    parts = {*words, *re.findall("[a-z]+", name.lower())}
    # `sig_xsec` and `pass_trigger`; a variable such as PASS_DB may be a password.
    is_first = words[0] in ("pass", "sig") and len(words) > 1
    if is_first and _is_of_analysis(words) and not name.isupper():
        parts -= {words[0]}
    if any(map(_SECRET_WORD.fullmatch, parts)):
        return True
    beside = {word for word in words if word not in ("key", "keys")}
    # `n_key` may be a count: the value decides, see `_hides`.
    if "key" in words and not all(map(_DASK_KEY_WORD.fullmatch, beside)):
        return True
    return "keys" in words and any(map(_QUALIFIER.fullmatch, beside))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _CAMEL_WORDS.findall(name)]


def _counts(name: str) -> bool:
    return any(map(_COUNT_WORD.fullmatch, _words(name)))


def _is_of_analysis(words: list[str]) -> bool:
    """Return whether pass or sig are the only words of a secret, and no password."""
    secret = set(filter(_SECRET_WORD.fullmatch, words))
    is_login = any(map(_LOGIN_WORD.fullmatch, words))
    return bool(secret) and secret <= _PASS_OR_SIGNAL and not is_login


def _hides(name: str, value: Any, users: bool) -> bool:
    """Return whether a name denotes that all of a value is a secret."""
    if names_a_secret(name):
        if isinstance(value, (int, float)):
            return not (_counts(name) or _is_of_analysis(_words(name)))
        return not (name in _FOLDERS and isinstance(value, str) and value.startswith("/"))
    return users and isinstance(value, str) and _words(name) == ["key"]


# --- shapes --------------------------------------------------------------------------------
#
# Possessive quantifiers, atomic groups and lookbehinds at the start of a word keep each
# search linear: no part of a text is read again from each of its positions.

#: Every name of a secret contains one of these. They are searched in lower case, because an
#: expression that ignores case is several times slower.
_STEM: Final = "p(?:ass|wd|rox)|token|s(?:ecret|ig)|c(?:red|ookie)|bearer|auth|key|jwt|macaroon"

#: A text in lower case without a match contains no secret. Each alternative begins with a
#: letter, not a set: only then does `re` skip text without a call for every position.
_SUSPECT: Final = re.compile(
    rf"{_STEM}|@|%40|basic|eyj|a(?:kia|sia|iza|tatt3x)"
    r"|g(?:h[pousr]_|ithub_pat_|l(?:[a-z]{2,5}-|sa_)|sk_)"
    r"|x(?:ox|app-)|rk_(?:live|test)|s(?:k_(?:live|test)|k-(?<![^\W_]sk-)|g\.|hpat_)"
    r"|ya29|hf_|pypi-|mda"
    # Of npm_, dckr_pat_, dop_v1_ and dapi, because texts with n or d are frequent.
    r"|pm_|kr_pat_|p_v1_|api[0-9a-f]{32}"
    r"|gocspx-|hv[bs]\.|hooks\.slack|public-files/|-u(?:ser)?[ =]"
    r"|://[^\s/]*:(?!\d+(?:[/\s]|\Z))"
)

#: Secrets by their shape, by a part of the text in lower case without which none matches.
_SHAPES: Final = {
    # Tokens of common services. `sk-` is not the end of `task-`, nor before a hash of Dask;
    # only `sk-ant-` and `sk-proj-` can follow a hyphen or an underscore.
    "": r"""(?P<secret>
        A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])
        |gh[pousr]_[A-Za-z0-9]{20,}+ |github_pat_\w{20,}+
        |gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[\w.-]{16,}+
        |xox[a-z]-[\w-]{10,}+ |xapp-[\w-]{10,}+
        |rk_(?:live|test)_\w{10,}+ |sk_(?:live|test)_\w{10,}+
        |AIza[\w-]{30,}+ |ya29\.[\w-]{16,}+ |hf_[A-Za-z0-9]{30,}+ |pypi-[\w-]{50,}+
        |MDA[A-Za-z0-9+/_-]{40,}+={0,2}
        |npm_[A-Za-z0-9]{30,}+ |dckr_pat_[\w-]{20,}+ |GOCSPX-[\w-]{20,}+ |hv[bs]\.[\w-]{20,}+
        |sk-(?<![\w-]sk-)(?![0-9a-f]{32}(?![\w-]))[\w-]{20,}+
        |sk-(?<![^\W_]sk-)(?:ant|proj)-(?![0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}(?!\w))
        [\w-]{20,}+
        |SG\.(?<![^\W_]SG\.)[\w-]{22}\.[\w-]{43}(?![\w-])
        |dop_v1_[0-9a-f]{64} |dapi[0-9a-f]{32}(?!\w)
        |ATATT3x[\w=-]{50,}+ |gsk_[A-Za-z0-9]{40,}+ |glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}
        |shpat_[0-9A-Fa-f]{32})""",
    # URLs of Slack's webhooks, and of files that ownCloud shares.
    "hooks.slack.com": r"hooks\.slack\.com/\w{1,20}/(?P<secret>[\w/-]++)",
    "public-files/": r"public-files/(?P<secret>\w{10,}+)",
    # Options of curl, but not a user and a group of numbers.
    "-u": r"""(?<![\w-])-(?:u|-user)(?:[ \t]{1,4}|=)["']?(?!\d++:\d)
        (?P<secret>[^\s:/@"']++:[^\s"']++)""",
    "sshpass": r"""sshpass[ \t]{1,4}-p[ \t]{0,4}
        (?P<secret>"[^"\n]*+"|'[^'\n]*+'|[^\s"']++)""",
    "basicauth(": r"""BasicAuth\((?!<redacted>)
        (?P<secret>[^()\n"']*+["'](?:[^\n]*?(?=\\{0,7}["']\s?\))|[^\n]*))""",
    "machine": r"machine\s++\S++\s++login\s++\S++\s++password\s++(?P<secret>\S++)",
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

#: A stem and the rest of its word.
_STEM_IN_WORD: Final = re.compile(rf"(?:{_STEM})[\w.-]*+")

#: From a stem back to the start of its name, in the reversed text. Neither an escaped line
#: break nor a quoted character is part of the name.
_ESCAPED = r"[nrt]\\|[0-9a-f]{2}%"
_NAME_START: Final = re.compile(
    rf"(?:[\w.-]*?(?={_ESCAPED})|[\w.-]*+)"
    rf"(?:(?<=yek)[ ](?:{_KEY_OF[::-1]})(?={_ESCAPED}|[^\w.-]|\Z))?"
    r"[\"']?"
)

#: A name, and the text between it and its value, in lower case. A quote behind the first
#: bracket begins a key of Dask.
_NAME: Final = re.compile(
    r"(?:(?<!\A\()(?P<before>[\"'])|[\"'])?"
    rf"(?P<name>(?:(?:{_KEY_OF})[ ](?=key))?(?P<dash>-)?[\w.-]++)"
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

# Until Python 3.11.4, a group that is repeated possessively can match wrongly (gh-106052), so
# such groups are atomic instead: (?>(?:…)*).

#: Brackets with up to four levels. Of deeper or unclosed ones, 20 lines are replaced.
_BRACKETS = "(?!)"
for _ in range(4):
    _BRACKETS = (
        r"[(\[{](?>(?:[^()\[\]{}\"'\\]++|\\.|\"(?>(?:[^\"\\\n]++|\\.)*)\""
        rf"|'(?>(?:[^'\\\n]++|\\.)*)'|[\"'\\]|{_BRACKETS})*)[)\]}}]"
    )

_ALTERNATIVE: Final = r"[ \t]+(?:or|and|if|else)[ \t][^\n\"']{0,200}[\"']"
_SCHEME: Final = r"(?i:bearer|basic|digest|negotiate|ntlm|token|apikey)(?:[ \t]{1,4}|%20|\+)"
_LINE: Final = r"(?>(?:[^\n\"'\\]|\\(?![nr\"']))+)"

#: A value. The last group that matched is the secret.
_VALUE: Final = re.compile(
    rf"(?P<nothing>{_NOTHING})"
    # A string. In the repr of a repr, its quotes and those within it have more backslashes.
    # A string that is part of an expression is replaced up to the end of the line.
    r"|[rRbBuUfF]{0,2}(?P<slashes>\\{0,7})(?P<mark>[\"'])"
    rf"(?:{_SCHEME})?"
    r"(?P<inside>(?>(?:(?P=slashes){2}\\[\\\"']|(?!(?P=slashes)(?P=mark))[^\n])*))"
    r"(?:(?P=slashes)(?P=mark)(?P<rest>(?:[ \t]{0,4}(?:[rRbBuUfF]{0,2}[\"']"
    rf"|[+%][ \t]{{0,4}}[\w\"'])|\.\w{{1,20}}\(|{_ALTERNATIVE})[^\n]*|(?=\w)(?>{_BARE}+))?)?"
    # The indented lines of a YAML block.
    r"|[|>][\d+-]{0,2}[ \t]{0,4}(?P<eol>\r?\n|\\{1,4}n)(?P<indent>[ \t]+)"
    r"(?P<block>(?>(?:(?!(?P=eol))[^\n]|(?P=eol)+(?P=indent))+))"
    rf"|(?i:digest|aws4-hmac-sha256)[ \t]{{1,4}}(?P<credentials>{_LINE})"
    rf"|(?:{_SCHEME})?(?P<bare>(?>(?:{MARK}|{_BARE}|{_BRACKETS}|[(\[{{](?:[^\n]*\n){{0,19}}[^\n]*)+)"
    rf"(?:(?:[ \t]{{1,4}}[+%][ \t]{{1,4}}[\w\"']|{_ALTERNATIVE})[^\n]*)?)"
)

#: The value of a cookie or a token of Rucio contains spaces and ends with its line, unless it
#: has quotes.
_LINE_VALUE: Final = re.compile(
    rf"(?!{_NOTHING}|[rRbBuUfF]{{0,2}}\\{{0,7}}[\"']|[(\[{{])(?P<line>{_LINE})"
)

#: In ``the token is abc123`` a secret follows a name that ends with one of these words.
_ANNOUNCING: Final = re.compile("(?:token|secret|credential)s?|passw(?:or)?d|passphrase")

#: A file; a line number follows.
_FILE: Final = re.compile(
    r".*\.(?:pyx?|pyc|so|c|cc|cpp|h|go|js|java|json|ya?ml|toml|ini|conf|cfg|txt|log|pem|crt"
    r"|root|parquet)"
)

_NUMBER: Final = re.compile(r"[+-]?[\d_.,]+(?:[eE][+-]?\d+)?")

_TASK_KEY: Final = re.compile(r":\w+(?::\w+)+")

_STRING: Final = re.compile(r"[rRbBuUfF]{0,2}\\{0,7}[\"']")


def _spans(text: str, lowered: str) -> Iterator[Span]:
    """Find the secrets in a text; they may overlap."""
    for part, pattern in _SHAPE_PATTERNS:
        if part in lowered:
            for match in pattern.finditer(text):
                yield match.span("secret")
    if len(lowered) != len(text):
        # Lower case of some letters has two characters, which would shift all positions.
        lowered = re.sub("[A-Z]+", lambda match: match[0].lower(), text)
    # Most words have no stem, so a search for stems is several times faster than one for
    # names. The start of the name around a stem is found in the reversed text.
    backwards, length, at = lowered[::-1], len(text), 0
    while stem := _STEM_IN_WORD.search(lowered, at):
        before = _NAME_START.match(backwards, length - stem.start(), length - at)
        name = before and _NAME.match(lowered, length - before.end())
        if name is None:
            at = stem.end()
            continue
        at = name.end("name")
        if span := _value_span(text, name):
            at = max(at, span[1])
            yield span


def _value_span(text: str, match: re.Match[str]) -> Span | None:
    """Return the span of the value that follows a name, or None if it is not a secret."""
    at = match.start("name")
    name = text[at : match.end("name")]
    is_key = name.lower() in ("key", "keys")
    # A plain key is a secret in the repr of a mapping, and in a query.
    in_repr = match["quote"] and match["sign"] == ":"
    if not (in_repr or text[at - 1 : at] in ("?", "&") if is_key else names_a_secret(name)):
        return None
    if match["element"]:
        return match.span("element")
    words = _words(name)
    if match["phrase"] or match["word"]:
        start, stop = match.span("phrase" if match["phrase"] else "word")
        phrase = text[start:stop]
        # Messages are kept: English words, files and URLs are not secrets.
        is_place = "://" in phrase or phrase.startswith(("/", "~/", "./", MARK))
        phrase = phrase.rstrip(".,;:!?)]}>")
        is_english = phrase.replace(" ", "").isalpha() and phrase[1:].islower()
        is_message = is_english or is_place or not _ANNOUNCING.fullmatch(words[-1])
        return None if is_message or len(phrase) < 8 else (start, start + len(phrase))
    # These need no value. Values that are read and kept are read again from each name within.
    is_file = match["sign"] == ":" and _FILE.fullmatch(name)
    if is_file or (in_repr and is_key and not _STRING.match(text, match.end())):
        return None
    # A key of a task, such as `fit_pass:SR:2018`, but not a name and its password.
    is_first = match.start("name") == 0 and len(words) > 1
    if is_first and _TASK_KEY.fullmatch(text, match.end("name")) and _is_of_analysis(words):
        return None
    if name in _FOLDERS and text.startswith(("/", "'/", '"/'), match.end()):
        return None
    has_spaces = "cookie" in name.lower() or "rucio" in name.lower()
    line = has_spaces and _LINE_VALUE.match(text, match.end())
    value = line or _VALUE.match(text, match.end())
    if not value or value.lastgroup in (None, "nothing"):
        return None
    start, stop = value.span(value.lastgroup)
    if value.lastgroup == "rest":
        start = value.start()
    secret = text[start:stop]
    is_dask_key = is_key and in_repr and _DASK_KEY.fullmatch(secret)
    # A number is a count, or the port of a host.
    is_item = in_repr and value.lastgroup == "bare"
    is_count = _counts(name) or (is_item and _is_of_analysis(words))
    is_number = _NUMBER.fullmatch(secret) and (is_count or text.endswith("://", 0, at))
    return None if is_dask_key or is_number else (start, stop)
