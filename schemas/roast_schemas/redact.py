"""Replace secrets in records. This is the only redactor of recordings and of imports.

A :class:`Redactor` receives each record immediately before it is encoded and applies the
same rules to every string in it, names of mappings included. A secret becomes a mark with a
keyed hash of it, such as ``<redacted:3f9a2c71d0>``: the same secret has the same mark in all
records, different secrets have different ones. Keys, prefixes and file names that contain
secrets therefore still join, and stay distinct. The key of the hash is random and never
written, so marks of two recordings cannot be compared, and no secret can be guessed from its
mark.

Two rules find secrets:

* By name: the name is the key of a mapping, or precedes a value in text, as in
  ``password="…"``, ``'token': '…'``, ``--api-key …`` and ``?X-Amz-Signature=…``. Names are
  compared word by word, so ``n_tokens``, ``monkey`` and ``author`` are not secrets. Names that
  analyses use too, such as ``pass``, ``sig`` and ``sort_key``, need further evidence: a query
  of a URL, a user name beside it, or a value that looks generated.
* By shape: ``user:password@`` in a URL, JSON web tokens, private keys, and the tokens of
  common services.

Only the secret is replaced: host, path and name remain. In ambiguous cases the longer text
is replaced. All searches take time linear in the length of the text, adversarial text
included.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2s
from itertools import islice, pairwise
from typing import Any, Final

#: Replacement of a value that is nested too deep to be searched, and of every secret in traces
#: of earlier versions.
MARK: Final = "<redacted>"

#: With 40 bits, the 10,000 secrets of a recording have different marks, except in one of
#: 22,000 recordings.
_HASH_BYTES: Final = 5

#: A mark: of a secret, or of a text that was redacted before.
_MARK: Final = rf"<redacted(?::[0-9a-f]{{{2 * _HASH_BYTES}}})?>"
_IS_MARK: Final = re.compile(_MARK)

#: Version of a package, as of PEP 440.
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+(?:\.?(?:a|b|rc|dev|post)\d+)*(?:\+[\w.]+)?")

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
    key : bytes, optional
        Key of the hashes in marks; random by default. Redactors of one recording share it.
    """

    def __init__(self, patterns: Iterable[str] = (), key: bytes | None = None) -> None:
        self._key = key or os.urandom(16)
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
        is_suspect = _SUSPECT.search(lowered)
        spans = list(_spans(text, lowered)) if is_suspect else []
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
            secret = text[start:stop]
            if secret and not _IS_MARK.fullmatch(secret):
                pieces += [text[at:start], self._mark(secret)]
                at = stop
        self.replaced += len(pieces) // 2
        # A name such as --password decides about the item that follows it.
        decides = is_suspect and (names_a_secret(text) or _program(text))
        if not pieces and not decides:
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

    def _value(
        self,
        value: Any,
        name: Any = "",
        users: bool = False,
        depth: int = 0,
        with_login: bool = False,
    ) -> Any:
        """Redact a value of the user or of Dask, all of it if its name denotes a secret."""
        if name and isinstance(name, str) and _hides(name, value, users, with_login):
            return self._whole(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (bytes, bytearray)):
            return f"<{len(value)} bytes>"
        if not isinstance(value, (dict, list, tuple)):
            return value
        if depth >= MAX_DEPTH:
            self.replaced += 1
            return MARK
        if isinstance(value, dict):
            redacted: dict[Any, Any] = {}
            item_name: Any
            login = any(isinstance(key, str) and _LOGIN.search(key.lower()) for key in value)
            for key, item in value.items():
                new_key, item_name = key, ""
                if key not in self._clean_names:
                    new_key = self._value(key)
                    # In {"name": "TOKEN", "value": "…"} the name denotes the value.
                    is_value = str(key).lower() == "value"
                    item_name = _label(value) if is_value else key
                    if new_key is key and not is_value and not _may_hide(str(key)):
                        _remember(self._clean_names, key)
                new_item = self._value(item, item_name, users, depth + 1, login)
                redacted[_unused(new_key, redacted)] = new_item
            return redacted
        items: list[Any] = []
        option, program = "", None
        for item in value:
            if not isinstance(item, str):
                match item:
                    # A pair of name and value, as in a list of headers; not of a package, such
                    # as asttokens, and its version.
                    case [str(header), secret] if _hides(header, secret, users=False) and not (
                        isinstance(secret, str) and _VERSION.fullmatch(secret)
                    ):
                        items.append([self.text(header), self._whole(secret)])
                    case _:
                        items.append(self._value(item, option, users, depth + 1))
                continue
            # An item that follows --password is the value of that option.
            hides = option and not item.startswith("--")
            glued = program.fullmatch(item) if program and not hides else None
            if glued and glued["secret"]:
                items.append(item[: glued.start("secret")] + self._whole(glued["secret"]))
            else:
                items.append(self._whole(item) if hides else self.text(item))
            is_option = glued or (_OPTION.fullmatch(item) and names_a_secret(item))
            option = item if is_option and not (glued and glued["secret"]) else ""
            program = _program(item) or program
        return items

    def _whole(self, value: Any) -> Any:
        """Replace a value; an empty one, or one that is replaced already, remains."""
        if value is None or isinstance(value, bool) or value in ("", [], {}, ()):
            return value
        if isinstance(value, str) and _IS_MARK.fullmatch(value):
            return value
        self.replaced += 1
        return self._mark(value if isinstance(value, str) else repr(value))

    def _mark(self, secret: str) -> str:
        text = secret.encode(errors="surrogatepass")
        return f"<redacted:{blake2s(text, key=self._key, digest_size=_HASH_BYTES).hexdigest()}>"


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
    r"|(?:db|user|ssh|key|my|pg|ftp|smtp|root|admin)pass|\w*pwd|\w*secrets?|\w*creds|cred|pw|tok"
    r"|\w*bearer|(?:http|https|ftp|all|socks)prox(?:y|ies)|proxies"
    r"|(?:x|o|http|my)?auth|auth[zn]|\w*authorization|\w*cookies?|jwts?|macaroons?|keytab"
    r"|\w*sess(?:ion)?id"
    rf"|\w*(?:{_KEY_OF})keys?(?:id)?"
)

_QUALIFIER: Final = re.compile(_KEY_OF)

#: Words directly before a final ``key`` that make it the key of a service.
_OWNER: Final = re.compile(
    "client|service|app|application|consumer|customer|db|database|deploy|deployment|developer"
    "|encrypt|functions|host|instrumentation|integration|maps|publishable|restricted|security"
    "|server|webhook|pass|adafruit|adobe|airtable|algolia|alibaba|anthropic|atlassian|azure"
    "|bitbucket|cloudflare|cohere|coinbase|confluent|datadog|deepl|discord|dropbox|facebook"
    "|fastly|firebase|gcp|gemini|github|gitlab|google|grafana|groq|heroku|huggingface|jfrog"
    "|linear|mailchimp|mailgun|mapbox|mistral|neptune|netlify|newrelic|nvidia|openai|okta"
    "|paypal|perplexity|plaid|replicate|segment|sendgrid|sentry|shodan|slack|snyk|square|stripe"
    "|supabase|telegram|twilio|twitter|vault|wandb|yandex|zendesk"
)

#: With only these words beside it, ``key`` is a key of Dask.
_DASK_KEY_WORD: Final = re.compile(
    "dask|tasks?|name|prefix|group|split|dependen(?:t|cy|cies)|collisions?|in|memory|report"
)

#: ``KeyError`` and ``ProxyError`` are names of errors, not of a key and a proxy.
_ERROR_WORD: Final = re.compile("(?:error|exception|warning)s?")

#: Last words of a name that denotes something about a secret, which is none itself:
#: ``password_file``, ``token_url``, ``auth_type``.
_ABOUT: Final = re.compile(
    "(?:file|path|dir|director(?:y|ie)|folder|filename|ur[il]|endpoint|type|expir(?:y|e|ation)"
    "|ttl|timeout|len|length|size|count|name|format|polic(?:y|ie)|provider|limit|enabled"
    "|required|mode|scope|method|issuer|audience|port|class|algorithm|weight|column|index|idx"
    "|manager|factory|lifetime|interval|attempt|retrie|retry|pattern|regex|validator|handler"
    "|backend|field|prompt|mask|pt|eta|phi|mass|embedding|classification|ids|sock|socket)s?"
)

#: A number whose name contains one of these is a count.
_COUNT_WORD: Final = re.compile(
    "n|num|nb|number|counts?|max|min|total|len|length|size|limit|rate|mean|avg|per"
)

#: In analyses, these are mostly events that pass a selection, signal, and a weight.
_OF_ANALYSES: Final = frozenset({"pass", "sig", "signature", "signatures", "pw", "tok", "pat"})

#: Words beside sig or signature that make it the signature of a request.
_REQUEST_WORD: Final = re.compile("amz|aws|goog|shared|access|hub|request|url|hmac|webhook")

#: Words before ``pat`` that make it a personal access token.
_FORGE: Final = re.compile("git|github|gitlab|gh|gl|azure|ado|devops|vsts|bitbucket|gitea")

#: Words after ``token`` with which it is still the token.
_OF_TOKEN: Final = frozenset({"id", "value", "secret", "string", "header", "refresh", "access"})

#: Variables with a folder, though ``pwd`` is otherwise a password.
_FOLDERS: Final = frozenset({"PWD", "OLDPWD"})

#: A path of two folders or more, which is the value of ``pwd`` in a shell.
_FOLDER: Final = re.compile(r"[\"']?(?:/[a-z][a-z_-]*\d{0,4}){2,}/?[\"']?(?![^\s,;)\]}])")

#: Words before ``pass`` that make it a password, and after it.
_LOGIN_WORD: Final = re.compile(
    "db|database|user|ssh|my|admin|root|login|account|mail|email|imap|smtp|ftp|sftp|http"
    "|wifi|ldap|bind|redis|mongo|rabbitmq|basic|(?:my|pg|postgre)?sql|pg"
    "|phrase|word|wd|code|hash|salt"
)

#: A name of a user, or of another password, beside which ``pass`` is a password.
_LOGIN: Final = re.compile(
    r"(?<![a-z])(?:user(?:[_-]?(?:name|id))?|uname|login|pwd|db_?pass|passw(?:or)?d)(?![a-z])"
)

_LOGIN_FIELD: Final = re.compile(rf"{_LOGIN.pattern}[\"']?[ ]{{0,3}}[:=,]")

#: The text of a tuple, or a text that ends with one of Dask's hashes: a key of Dask.
_DASK_KEY: Final = re.compile(
    r"\(.*|.*-(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.DOTALL
)

#: Fields whose text is the name of the ``value`` beside them.
_LABELS: Final = frozenset({"name", "key", "id", "variable", "header", "option", "field"})


def names_a_secret(name: str) -> bool:
    """Return whether a name denotes a secret, whatever its value; a plain ``key`` does not."""
    return _strength(name) == _SURE


#: Strengths of a name as evidence for a secret.
_NONE, _NEEDS_EVIDENCE, _SURE = range(3)


@lru_cache(maxsize=4_096)
def _strength(name: str) -> int:
    # The ends of a very long name are enough, and keep the search short.
    name = name if len(name) <= 400 else name[:200] + " " + name[-200:]
    words = _words(name)
    if not words or _ERROR_WORD.fullmatch(words[-1]) or _ABOUT.fullmatch(words[-1]):
        return _NONE
    if _DASK_KEY.fullmatch(name) or "=" in name or name.count("/") > 1:
        return _NONE  # a key of Dask, a text, or a path
    runs = re.findall("[a-z]+", name.lower())
    parts = {*words, *runs}
    if any(map(_SECRET_WORD.fullmatch, parts)):
        return _SURE
    tokens = [part for part in parts if part.endswith(("token", "tokens"))]
    core = [word for word in words if word not in _OF_TOKEN] or words
    if tokens and (core[-1] in tokens or runs[-1] in tokens):
        return _SURE
    if _is_sure_beside(name, words):
        return _SURE
    beside = {word for word in words if word not in ("key", "keys")}
    is_key = "key" in words and not all(map(_DASK_KEY_WORD.fullmatch, beside))
    return _NEEDS_EVIDENCE if tokens or is_key or _OF_ANALYSES & parts else _NONE


def _is_sure_beside(name: str, words: list[str]) -> bool:
    """Return whether a word that analyses use too denotes a secret by the words beside it."""
    others = words[:-1]
    is_variable = name.isupper() and bool(others)
    if "key" in words or "keys" in words:
        if any(map(_QUALIFIER.fullmatch, words)):
            return True
        if words[-1] == "key" and others:
            return _OWNER.fullmatch(others[-1]) is not None
    if "pass" in words:
        return any(map(_LOGIN_WORD.fullmatch, words)) or (is_variable and words[-1] == "pass")
    if not words[-1:] or not others:
        return False
    if words[-1].startswith("sig"):
        return words[-1] in _OF_ANALYSES and any(map(_REQUEST_WORD.fullmatch, others))
    if words[-1] in ("proxy", "proxies"):
        return others[-1] in ("http", "https", "ftp", "all", "socks")
    return words[-1] == "pat" and (is_variable or _FORGE.fullmatch(others[-1]) is not None)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _CAMEL_WORDS.findall(name)]


def _counts(name: str) -> bool:
    return any(map(_COUNT_WORD.fullmatch, _words(name)))


def _is_of_analysis(words: list[str]) -> bool:
    """Return whether only words that analyses use too make the name one of a secret."""
    return bool(words) and words[-1] in _OF_ANALYSES and len(words) == 1


def _may_hide(name: str) -> bool:
    return _strength(name) != _NONE or _words(name) == ["key"]


def _hides(name: str, value: Any, users: bool, with_login: bool = False) -> bool:
    """Return whether a name denotes that all of a value is a secret."""
    strength = _strength(name)
    if strength == _SURE:
        if isinstance(value, (int, float)):
            return not (_counts(name) or _is_of_analysis(_words(name)))
        return not (name in _FOLDERS and isinstance(value, str) and value.startswith("/"))
    if not isinstance(value, str):
        return False
    if strength == _NEEDS_EVIDENCE:
        is_login = with_login and _words(name)[-1] == "pass" and not _NUMBER.fullmatch(value)
        return is_login or _looks_generated(value)
    return users and _words(name) == ["key"]


def _label(mapping: dict[Any, Any]) -> Any:
    """Return the name of the ``value`` in a mapping, or an empty text."""
    for field, name in mapping.items():
        if isinstance(field, str) and field.lower() in _LABELS and isinstance(name, str):
            return name
    return ""


_DIGIT: Final = re.compile(r"\d")
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_RUN: Final = re.compile(r"[A-Za-z0-9]{16,}")
#: Single digits within words, as in ``s3cr3t``.
_DIGIT_IN_WORD: Final = re.compile(r"[a-z]\d(?=[a-z])")
_SYMBOL: Final = re.compile(r"[!@#$^&*]")


def _looks_generated(value: str) -> bool:
    """Return whether a value is neither a number, a word, a path nor a hash of Dask."""
    if not 6 <= len(value) <= 4_096 or not re.fullmatch(r"[^\s()<>\[\]{}|\"',;]+", value):
        return False
    if not (_DIGIT.search(value) and re.search("[A-Za-z]", value)):
        return False
    if value.startswith(("/", "~/", "./")) or "://" in value or "*" in value:
        return False
    if len(value) >= 8 and _SYMBOL.search(value):
        return True
    if (
        value.isalnum()
        and len(_DIGIT_IN_WORD.findall(value)) >= 2
        and not _HEX.fullmatch(value)
    ):
        return True
    for run in _RUN.findall(value):
        kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in run]
        changes = sum(a != b for a, b in pairwise(kinds))
        if changes >= 0.45 * len(run) and not _HEX.fullmatch(run):
            return True
    return False


# --- shapes --------------------------------------------------------------------------------
#
# Possessive quantifiers, atomic groups and lookbehinds at the start of a word keep each
# search linear: no part of a text is read again from each of its positions.


def _any_of(*parts: str) -> str:
    """Return an expression of these parts, by first letter: `re` then tries only a few."""
    by_letter: dict[str, list[str]] = {}
    for part in parts:
        by_letter.setdefault(part[0], []).append(part[1:])
    return "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items())


#: Every name of a secret contains one of these. They are searched in lower case, because an
#: expression that ignores case is several times slower.
_STEM: Final = (
    "p(?:ass|wd|rox|w(?![a-z]))|tok(?:en|(?![a-z]))|s(?:ecret|ig|ess(?:ion)?id)"
    "|c(?:red|ookie)|bearer|auth|key|jwt|macaroon|_pat(?![a-z])"
)

#: Every token of a service begins with one of these, in lower case.
_TOKEN_START: Final = r"\.[\w-]{6}\.[\w-]{27}|" + _any_of(
    *r"""
    akia asia a3t a3-[a-z0-9]{6}- abia acca absk age-s akcp aiza ac[0-9a-f]{32} api_org_
    api-[a-z0-9]{26} atatt3x atctt3x atbb aqvn bedrock-api- cfut_ clojars_ cmvmd
    dapi[0-9a-f]{32} dckr_[a-z] do[opr]_v1_ dp\. duffel_ dt0c01\. eyj eaa[acm] ezak eztk
    fig[doru]_ fio-u- flwseck fm[12] fo1_ gh[pousr]_ github_pat_ gl[a-z]{2,6}- glsa_ glc_
    gocspx- gr1348941 gsk_ hf_ hrku-aa hv[bs]\. ico- lin_api_ lsv2_ ltai mda npm_ nrak-
    nvapi- ntn_ ops_eyj p8e- pat[a-z0-9]{14}\. pat\. phc_ phx_ pk\.eyj pmak- pnu_ pplx-
    pscale_ pul- pypi- q~ r8_ rdme_ rk_[lt] rubygems_ sat\. sg\. sgp_ sha256~ shippo_
    shp[a-z]{2}_ sk[0-9a-f]{32} sk_[lt] sl\. sm_[aps]at_ sntry sq0
    sk-(?:(?<![^\W_]sk-)|(?<=\\[nrt]sk-)|(?<=%[0-9a-f]{2}sk-)) tfp_ tk-us- tvly- whsec_
    wandb_v xox xapp- xkeysib- xai- ya29 yc[a-z0-9_-]{38} atlasv1 _mmk -us\d :aa 1//0
    4b1d[a-z0-9]{38}
    """.split()  # noqa: SIM905
)
_TOKEN_STARTS: Final = re.compile(_TOKEN_START)

#: A text in lower case without a match contains no secret. Each alternative begins with a
#: letter, not a set: only then does `re` skip text without a call for every position.
_SUSPECT: Final = re.compile(
    rf"{_STEM}|@|%40|basic|private|login|{_TOKEN_START}"
    r"|hooks\.|public-files/|-u(?:ser)?[ =]|mysql|mariadb|redis-cli|ldap|sqlcmd|mongo|unzip"
    r"|webhook|:(?:543\d|6432|\*):"
    r"|://[^\s/]*:(?!\d+(?:[/\s]|\Z))"
)

#: The start of a token: not within a word, but after an escaped character.
_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"

#: Tokens of services. `sk-` is not the end of `task-`, nor before a hash of Dask; only
#: `sk-ant-` and `sk-proj-` can follow a hyphen or an underscore.
_TOKENS: Final = re.compile(
    rf"""(?P<secret>
        A[KS]IA[A-Z0-9]{{16}}(?![A-Za-z0-9])
        |gh[pousr]_[A-Za-z0-9]{{20,}}+ |github_pat_\w{{20,}}+
        |gl(?:pat|dt|rt|cbt|ptt|ft|ffct|imt|agent|oas|soat)-[\w.-]{{16,}}+
        |xox[a-z](?:\.xox[bp])?-[\w-]{{10,}}+ |xapp-[\w-]{{10,}}+
        |rk_(?:live|test|prod)_\w{{10,}}+ |sk_(?:live|test|prod)_\w{{10,}}+
        |AIza[\w-]{{30,}}+ |ya29\.[\w-]{{16,}}+ |hf_[A-Za-z0-9]{{30,}}+ |pypi-[\w-]{{50,}}+
        |MDA[A-Za-z0-9+/_-]{{40,}}+={{0,2}}
        |npm_[A-Za-z0-9]{{30,}}+ |dckr_[a-z]{{3}}_[\w-]{{20,}}+ |GOCSPX-[\w-]{{20,}}+
        |hv[bs]\.[\w-]{{20,}}+
        |(?<!-){_START}(?<!_)sk-(?![0-9a-f]{{32}}(?![\w-]))[\w-]{{20,}}+
        |do[opr]_v1_[0-9a-f]{{64}} |dapi[0-9a-f]{{32}}(?!\w)
        |ATATT3x[\w=-]{{50,}}+ |ATCTT3x[\w=-]{{50,}}+ |gsk_[A-Za-z0-9]{{40,}}+
        |glsa_[A-Za-z0-9]{{32}}_[0-9A-Fa-f]{{8}} |shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{{32}}
        |{_START}(?:
        sk-(?:ant|proj|svcacct|admin|or-v1)-
        (?![0-9a-f]{{8}}(?:-?[0-9a-f]{{4}}){{3}}-?[0-9a-f]{{12}}(?!\w))[\w-]{{20,}}+
        |SG\.[\w-]{{22}}\.[\w-]{{43}}(?![\w-]) |
        A3T[A-Z0-9]{{17}}(?![A-Za-z0-9]) |A(?:BIA|CCA)[A-Z0-9]{{16}}(?![A-Za-z0-9])
        |A3-[A-Z0-9]{{6}}-[A-Z0-9]{{6,11}}(?:-[A-Z0-9]{{5}}){{2,3}}
        |ABSK[A-Za-z0-9+/]{{60,}}+={{0,2}}
        |AGE-SECRET-KEY-1[A-Z0-9]{{30,}}+ |AKCp[A-Za-z0-9]{{50,}}+ |cmVmd[A-Za-z0-9]{{50,}}+
        |api_org_[A-Za-z0-9]{{30,}}+ |API-[A-Z0-9]{{26}}(?![A-Za-z0-9]) |ATBB[A-Za-z0-9]{{24,}}+
        |AQVN[\w-]{{35,}}+ |bedrock-api-key-[\w=-]{{20,}}+ |cfut_[\w-]{{30,}}+
        |CLOJARS_[a-z0-9]{{40,}}+
        |dp\.[a-z]{{2,5}}\.[\w.-]{{20,}}+ |duffel_(?:test|live)_[\w=-]{{30,}}+
        |dt0c01\.[A-Za-z0-9]{{20,}}\.[A-Za-z0-9]{{50,}}+ |EAA[ACM][A-Za-z0-9]{{60,}}+
        |EAAA[\w-]{{40,}}+ |EZ[AT]K[A-Za-z0-9]{{40,}}+ |fig[doru]_[\w-]{{30,}}+
        |fio-u-[\w=-]{{40,}}+
        |FLWSECK(?:_TEST)?-[A-Za-z0-9]{{12,}}+(?:-X)? |fm[12][ar]?_[A-Za-z0-9+/]{{60,}}+={{0,3}}
        |fo1_[\w-]{{40,}}+ |GR1348941[\w-]{{20,}}+ |glc_[A-Za-z0-9+/]{{32,}}+={{0,3}}
        |HRKU-AA[\w-]{{40,}}+ |ico-[A-Za-z0-9]{{32}}(?<![0-9a-f]{{32}})
        |lin_api_[A-Za-z0-9]{{30,}}+
        |lsv2_[a-z]{{2}}_[0-9a-f]{{32}}_[0-9a-f]{{8,}}+ |LTAI[A-Za-z0-9]{{16,}}+
        |NRAK-[A-Z0-9]{{20,}}+ |nvapi-[\w-]{{40,}}+ |ntn_[0-9A-Za-z]{{40,}}+
        |ops_eyJ[\w+/=]{{40,}}+
        |p8e-[A-Za-z0-9]{{32}} |pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}
        |[ps]at\.[\w-]{{22}}\.[A-Za-z0-9]{{24}}\.[A-Za-z0-9]{{20}} |ph[cx]_[A-Za-z0-9]{{40,}}+
        |pk\.eyJ[\w-]{{20,}}\.[\w-]{{20,}}+ |PMAK-[0-9a-f]{{24}}-[0-9a-f]{{34}}
        |pnu_[A-Za-z0-9]{{36}}
        |pplx-[A-Za-z0-9]{{40,}}+ |pscale_[a-z]{{2,5}}_[\w=.-]{{32,}}+ |pul-[0-9a-f]{{40}}
        |r8_[A-Za-z0-9]{{37,}}+ |rdme_[a-z0-9]{{70}} |rubygems_[0-9a-f]{{48}} |sgp_[\w]{{40,}}+
        |sha256~[\w-]{{40,}}+ |shippo_(?:live|test)_[0-9a-fA-F]{{40}} |SK[0-9a-f]{{32}}(?!\w)
        |AC[0-9a-f]{{32}}(?!\w) |sl\.[\w=-]{{100,}}+ |sm_[aps]at_[A-Za-z0-9]{{16,}}+
        |sntry[su]_[\w+/=]{{40,}}+ |sq0(?:atp|csp|idp)-[\w-]{{22,}}+ |tfp_[\w=.-]{{40,}}+
        |tk-us-[\w-]{{40,}}+ |tvly-[\w-]{{28,}}+ |whsec_[A-Za-z0-9+/]{{24,}}+={{0,2}}
        |wandb_v\d_[\w-]{{30,}}+ |xkeysib-[0-9a-f]{{64}}-[A-Za-z0-9]{{16}}
        |xai-[A-Za-z0-9]{{60,}}+
        |YC[\w-]{{38}}(?![\w-]) |[A-Za-z0-9]{{14}}\.atlasv1\.[\w=-]{{60,70}}
        |[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk |[0-9a-f]{{32}}-us\d{{1,2}}(?!\w)
        |\d{{8,10}}:AA[\w-]{{30,}}+ |1//0[\w-]{{40,}}+ |4b1d[A-Za-z0-9]{{38}}(?!\w)
        |[MNO][\w-]{{23,25}}\.[\w-]{{6}}\.[\w-]{{27,38}}(?![\w-])
        |[\w~.]{{3}}\dQ~[\w~.-]{{31,34}}(?![\w~-])))""",
    re.VERBOSE,
)

#: Tokens that are cut: by the recorder, after 200 characters or more, or with an ellipsis.
_CUT_TOKENS: Final = re.compile(
    rf"""{_START}(?P<secret>(?:gh[pousr]_|github_pat_|gl(?:pat|cbt|ptt|dt|rt)-|xox[a-z]-|A[KS]IA
    |AIza|ya29\.|npm_|dckr_pat_|GOCSPX-|hv[bs]\.|dop_v1_|ATATT3x|glsa_|shpat_|sk-(?:ant|proj)-
    |[rs]k_live_|pypi-AgE|eyJ)[\w.-]++)\Z""",
    re.VERBOSE,
)
_CUT_LENGTH: Final = 200

#: Number of characters before a cut, and of cuts, that are searched.
_BEFORE_CUT: Final = 400
_MAX_CUTS: Final = 100

#: Programs, and their option for a password, whose name alone says nothing. The password
#: is the rest of the same word, or the next word.
_PROGRAMS: Final = [
    (r"(?:mysql|mariadb)[\w-]*+", "-p", True, False),
    ("sshpass", "-p", True, True),
    ("redis-cli", "-a", False, True),
    ("ldap(?:search|modify|add|delete|whoami|passwd|compare)", "-w", False, True),
    ("mongo(?:sh|dump|restore|import|export|stat|top)?", "-p", False, True),
    ("login", "-p", False, True),
    ("sqlcmd|bcp|7z|zip|unzip", "-P", True, True),
]

#: The names of the programs, and the option with the rest of its word.
_OPTIONS_OF_PROGRAMS: Final = [
    (
        re.compile(rf"(?:\S*/)?(?:{name})(?:\.exe)?"),
        re.compile(rf"{option}(?P<secret>{'.*+' if in_word else ''})"),
    )
    for name, option, in_word, _ in _PROGRAMS
]

#: The next word of a command line, or of the repr of its list.
_NEXT: Final = r"[\"']?,?[ \t]{1,4}[\"']?"

_COMMAND_LINES: Final = [
    re.compile(
        rf"(?<![\w-])(?:{name})(?:\.exe)?(?:{_NEXT}[^\s|;&\"']{{1,100}}){{0,20}}?{_NEXT}{option}"
        rf"(?:{_NEXT if in_next else ''}){'?' if in_word and in_next else ''}"
        r"(?P<secret>[^\s\"',\])]++)"
    )
    for name, option, in_word, in_next in _PROGRAMS
]


def _program(text: str) -> re.Pattern[str] | None:
    """Return the option for a password of the program that a text names, if it has one."""
    for name, option in _OPTIONS_OF_PROGRAMS:
        if len(text) < MAX_CACHED_LENGTH and name.fullmatch(text):
            return option
    return None


#: Secrets by their shape, by a part of the text in lower case without which none matches.
_SHAPES: Final = {
    # URLs of webhooks, and of files that ownCloud shares.
    "hooks.": r"hooks\.(?:slack\.com/\w{1,20}|zapier\.com/hooks/catch)/(?P<secret>[\w/-]++)",
    "webhooks/": r"/api/webhooks/(?P<secret>\d{5,}+/[\w-]++)",
    "webhookb2/": r"/webhookb2/(?P<secret>[\w/@-]++)",
    "public-files/": r"public-files/(?P<secret>\w{10,}+)",
    # Lines of .pgpass.
    ":": r"""(?m)^[\w.*-]{1,100}:(?:543\d|6432|\*):[\w*-]{1,60}:[\w*.-]{1,60}:
        (?P<secret>[^\s:]++)$""",
    # Elements of XML: a name, and its value.
    "<value>": r"""(?:<name>|name=["'])(?P<name>[\w.-]{1,100})(?:</name>|["'][ ]?/?>)
        \s{0,80}<value>(?P<secret>[^<\n]++)""",
    "private-lines": r"(?i)private-lines:\s{0,4}\d+\s++(?P<secret>[A-Z0-9+/=\s]++)",
    # Options of curl, but not a user and a group of numbers.
    "-u": r"""(?<![\w-])-(?:u|-user)(?:[ \t]{1,4}|=)["']?(?!\d++:\d)
        (?P<secret>[^\s:/@"']++:(?!//)[^\s"']++)""",
    "sshpass": r"""sshpass[ \t]{1,4}-p[ \t]{0,4}
        (?P<secret>"[^"\n]*+"|'[^'\n]*+'|[^\s"']++)""",
    "pass:": r"-pass(?:in|out)?[ =]{1,4}pass:(?P<secret>[^\s\"']++)",
    "%": r"""(?<![\w-])-U[ ]{0,4}["']?[\w.\\/-]{1,60}%(?P<secret>[^\s"']++)""",
    "basicauth(": r"""BasicAuth\((?!<redacted)
        (?P<secret>[^()\n"']*+["'](?:[^\n]*?(?=\\{0,7}["']\s?\))|[^\n]*))""",
    "login": r"""(?:machine\s++\S++|default)\s++login\s++\S++\s++(?:account\s++\S++\s++)?
        password\s++(?P<secret>\S++)""",
    "secretstr(": r"""SecretStr\([ ]{0,4}["'](?!\*+["'])(?P<secret>[^"'\n]++)""",
    ":thin:": r""":thin:[\w.-]{1,100}/(?P<secret>[^\s@/]++)@""",
    # JSON web tokens.
    "eyj": r"""(?<![\w-])(?>[\w-]*?(?=eyJ))
        (?P<secret>[\w-]{10,}+\.[\w-]{5,}+(?:\.[\w-]*+){0,3})""",
    # A key that was cut has no end line.
    "private key": r"""(?P<secret>-----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
        (?s:.*?-----END[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----|.*))""",
    # User and password in a URL, or a user name that is a token: of 20 characters or generated.
    # A password with a slash ends the authority early. A prefix or group may end within the
    # password, since Dask cuts keys at hyphens. A port may end a sentence.
    "://": r"""://(?P<secret>
        (?:[^\s/?\#'"<>\\:]*+:++[^\s/?\#'"<>\\:][^\s/?\#'"<>\\]*
        |(?P<user>[^\s/?\#'"<>\\:]{12,}):?)(?=@)
        |(?!\[)[^\s/?\#'"<>\\@]*:(?!\d*+[^\w\s/?\#'"<>\\@:]*+(?:[\s/?\#'"<>\\]|\Z)|\{)
        [^\s/?\#'"<>\\@:]*+(?![^\s/?\#'"<>\\])
        (?:[^\s'"<>\\@]{0,200}(?=@))?)""",
    "%40": r"""(?i:%3A%2F%2F)(?P<secret>[\w.~+-]{0,64}%3[aA][^\s&'"/]{1,256}?)%40""",
    # Credentials of HTTP, but not the words in ordinary sentences.
    "bearer": r"""(?i)(?<![a-z])bearer
        (?:[ \t]{1,20}|%20|\+|(?:\\{0,7}["'])?[ ]?[:=,][ ]?)(?:\\{0,7}["'])?
        (?!realm=|(?:tokens?|auth|authentication|authorization|scheme|header|credentials?
        |error|format|type|method|prefix|is|was|of|for|in|not|or|and|required|must|string|realm)
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

#: A name, and the text between it and its value, in lower case.
_NAME: Final = re.compile(
    r"(?P<before>[\"'])?"
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
    rf"{_MARK}|(?:None|none|null|True|true|False|false|no|yes|off|on|disabled|enabled|str|bytes|int|float|bool|object|dict|list"
    r"|tuple|Any|Optional|raise|return|pass|continue|break|yield)(?![\w.!@#$%^&*+~?-])"
    # Code that fetches it: a call without a string, or a variable of the environment.
    r"|(?:[A-Za-z_][\w.]*+\([\w., *]*+\)|os\.environ\[[\"']\w++[\"']\]"
    r"|os\.(?:environ\.get|getenv)\([\"']\w++[\"']\))(?=[ ]{0,4}(?:[\n,):#]|\Z))"
)

#: A value without quotes ends where something else begins: another parameter, the next item,
#: the rest of the sentence.
_BARE: Final = (
    r"(?:[^\s,;&'\"\\()\[\]{}<>%]++"
    r"|<(?!/)"
    r"|\\(?![nrt\"'\\])|\\\\(?![\"'\\])"
    r"|%(?!26|22|27)"
    r"|[,;](?=[^\s\w'\"\\]{0,3}\w)(?![\w.-]{1,64}(?:[ ][\w.-]{1,20})?[\"']?[=:])"
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
    rf"|(?:{_SCHEME})?(?P<bare>(?>(?:{_MARK}|{_BARE}|{_BRACKETS}|[(\[{{](?:[^\n]*\n){{0,19}}[^\n]*)+)"
    rf"(?:(?:[ \t]{{1,4}}[+%][ \t]{{1,4}}[\w\"']|{_ALTERNATIVE})[^\n]*)?)"
)

#: The value of a cookie or a token of Rucio contains spaces and ends with its line, unless it
#: has quotes.
_LINE_VALUE: Final = re.compile(
    rf"(?!{_NOTHING}|[rRbBuUfF]{{0,2}}\\{{0,7}}[\"']|[(\[{{])(?P<line>{_LINE})"
)

#: The value of the header Authorization: the scheme, if it is one of these, remains. The
#: values of its parameters can have quotes.
_CREDENTIALS: Final = re.compile(
    rf"(?!{_NOTHING}|[rRbBuUfF]{{0,2}}\\{{0,7}}[\"']|[(\[{{]|{_SCHEME})"
    r"(?:(?i:digest|aws|aws4-hmac-sha256|oauth|hawk|mac|signature|sharedkey(?:lite)?|googlelogin"
    r"|gssapi|kerberos|hoba|scram-sha-\d+|bot|geniekey|splunk|jwt|api-key|macaroon)[ \t]{1,4})?"
    r"(?P<line>(?>(?:[^\n\"'\\]|(?<==)(?P<mark>\\{0,7}[\"'])[^\n\"'\\]*+(?P=mark)"
    r"|\\(?![nr\"']))+))"
)

#: A string, which can contain brackets, or a bracket.
_BRACKET: Final = re.compile(r"\"[^\"\n]*+\"|'[^'\n]*+'|[()\[\]{}]")

#: In ``the token is abc123`` a secret follows a name that ends with one of these words.
_ANNOUNCING: Final = re.compile("(?:token|secret|credential)s?|passw(?:or)?d|passphrase")

#: Characters around a name that are read for further evidence.
_BESIDE: Final = 120
_ENOUGH: Final = 40
_VALUE_FIELD: Final = re.compile(
    r"(?i)(?<![A-Z0-9_.-])(?:value|val)(?:\\{0,7}[\"'])?[ ]{0,4}[:=][ ]{0,4}"
)
_LABEL_FIELD: Final = re.compile(
    r"(?i)(?<![A-Z0-9_.-])(?:name|key|id|variable|header|option|field|type)(?:\\{0,7}[\"'])?"
    r"[ ]{0,4}[:=][ ]{0,4}(?:\\{0,7}[\"'])?(?P<name>[\w.-]{1,100})"
)

#: What follows a string that is a name.
_COLON: Final = re.compile(r"\s{0,4}:(?!:)")

#: Words that name a secret in a key of Dask too.
_IN_KEY: Final = re.compile(r"\w*(?:password|passwd|passphrase|secret|pwd|credential)s?|key")

_QUERY_ESCAPES: Final = frozenset({"%3F", "%3f", "%26"})

#: A file; a line number follows.
_FILE: Final = re.compile(
    r".*\.(?:pyx?|pyc|so|c|cc|cpp|h|go|js|java|json|ya?ml|toml|ini|conf|cfg|txt|log|pem|crt"
    r"|root|parquet)"
)

_NUMBER: Final = re.compile(r"[+-]?[\d_.,]+(?:[eE][+-]?\d+)?")

#: With a number, such a name is that of a count.
_COUNTED: Final = re.compile(r"\w*(?:token|key|secret|cookie)s")
_DECIMAL: Final = re.compile(r"[+-]?\d{1,6}\.\d+(?:[eE][+-]?\d+)?")

_STRING: Final = re.compile(r"[rRbBuUfF]{0,2}\\{0,7}[\"']")


def _spans(text: str, lowered: str) -> Iterator[Span]:
    """Find the secrets in a text; they may overlap."""
    if _TOKEN_STARTS.search(lowered):
        for match in _TOKENS.finditer(text):
            yield match.start(), match.start() + len(match[0].rstrip("."))
        cuts = [match.start() for match in islice(re.finditer("…", text), _MAX_CUTS)]
        for cut in [*cuts, len(text)] if cuts or len(text) >= _CUT_LENGTH else []:
            if found := _CUT_TOKENS.search(text, max(0, cut - _BEFORE_CUT), cut):
                yield found.span("secret")
    for part, pattern in _SHAPE_PATTERNS:
        if part in lowered:
            for match in pattern.finditer(text):
                named = match.groupdict()
                user = named.get("user")
                if "name" in named and not names_a_secret(named["name"]):
                    continue
                if user is None or len(user) >= 20 or _looks_generated(user):
                    yield match.span("secret")
    if "-" in text:
        for pattern in _COMMAND_LINES:
            for match in pattern.finditer(text):
                yield match.span("secret")
    if "val" in lowered:
        yield from _labelled_spans(text)
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


def _labelled_spans(text: str) -> Iterator[Span]:
    """Find values whose name is beside them, as in ``{"name": "TOKEN", "value": "…"}``."""
    for field in _VALUE_FIELD.finditer(text):
        # The mapping around it, or the item of a list in YAML.
        start, stop = max(0, field.start() - _BESIDE), field.end() + _BESIDE
        start = max(text.rfind(edge, start, field.start()) for edge in ("{", "<", "- ")) + 1
        ends = [text.find(edge, field.end(), stop) for edge in ("}", ">", "- ")]
        stop = min((end for end in ends if end >= 0), default=stop)
        start = max(start, field.start() - _BESIDE, 0)
        names = [label["name"] for label in _LABEL_FIELD.finditer(text, start, stop)]
        if any(map(names_a_secret, names)):
            value = _VALUE.match(text, field.end())
            if value and value.lastgroup not in (None, "nothing"):
                yield value.span(value.lastgroup)


def _value_span(text: str, match: re.Match[str]) -> Span | None:
    """Return the span of the value that follows a name, or None if it is not a secret."""
    at = match.start("name")
    name = text[at : match.end("name")]
    is_key = name.lower() in ("key", "keys")
    is_query = text[at - 1 : at] in ("?", "&") or text[max(0, at - 3) : at] in _QUERY_ESCAPES
    # A plain key is a secret in the repr of a mapping, and in a query.
    in_repr = match["quote"] and match["sign"] == ":"
    strength = _strength(name)
    if not (in_repr or text[at - 1 : at] in ("?", "&")) if is_key else strength == _NONE:
        return None
    # User and password of a URL are a shape.
    if match["sign"] == ":" and text.endswith("://", 0, at):
        return None
    if strength == _SURE or is_key:
        return _sure_span(text, match, name)
    words = _words(name)
    # In a query, or as an option, these are no selections and signals.
    if is_query and "key" not in words:
        return _sure_span(text, match, name)
    # A value that is kept is read again from each name within, so only its start is read.
    if "pass" not in words and not _DIGIT.search(text, match.end(), match.end() + _ENOUGH):
        return None  # it does not look generated
    value = _VALUE.match(text, match.end(), match.end() + _ENOUGH)
    has_sign = match["sign"] or match["pair"] or match["dash"]
    if not value or value.lastgroup in (None, "nothing") or not has_sign:
        return None
    secret = value[value.lastgroup]
    if "pass" in words:
        beside = (
            text[max(0, at - _ENOUGH) : at] + " " + text[value.end() : value.end() + _ENOUGH]
        )
        is_login = (match["dash"] and not _NUMBER.fullmatch(secret)) or (
            _LOGIN_FIELD.search(beside.lower())
            and (not _NUMBER.fullmatch(secret) or (secret.isdigit() and len(secret) >= 4))
        )
        if is_login:
            return _sure_span(text, match, name)
    return _sure_span(text, match, name) if _looks_generated(secret) else None


def _sure_span(text: str, match: re.Match[str], name: str) -> Span | None:
    """Return the span of the value of a name that denotes a secret, or None if it has none."""
    at, words = match.start("name"), _words(name)
    is_key = name.lower() in ("key", "keys")
    in_repr = match["quote"] and match["sign"] == ":"
    if match["element"]:
        return match.span("element")
    if match["phrase"] or match["word"]:
        start, stop = match.span("phrase" if match["phrase"] else "word")
        phrase = text[start:stop]
        # Messages are kept: English words, files and URLs are not secrets.
        is_place = "://" in phrase or phrase.startswith(("/", "~/", "./", "<redacted"))
        phrase = phrase.rstrip(".,;:!?)]}>")
        is_english = phrase.replace(" ", "").isalpha() and phrase[1:].islower()
        is_message = is_english or is_place or not _ANNOUNCING.fullmatch(words[-1])
        is_short = len(phrase) < (6 if match["phrase"] else 8)
        return None if is_message or is_short else (start, start + len(phrase))
    # These need no value. Values that are read and kept are read again from each name within.
    is_file = match["sign"] == ":" and _FILE.fullmatch(name)
    if is_file or (in_repr and is_key and not _STRING.match(text, match.end())):
        return None
    if name in _FOLDERS and text.startswith(("/", "'/", '"/'), match.end()):
        return None
    if name == "pwd" and _FOLDER.match(text, match.end()):
        return None
    lowered = name.lower()
    has_spaces = "cookie" in lowered or "rucio" in lowered
    line = has_spaces and _LINE_VALUE.match(text, match.end())
    if "authorization" in lowered:
        line = _CREDENTIALS.match(text, match.end())
    value = line or _VALUE.match(text, match.end())
    if not value or value.lastgroup in (None, "nothing"):
        return None
    start, stop = value.span("line" if line else value.lastgroup)
    if value.lastgroup == "rest":
        start = value.start()
    if value.lastgroup == "bare":
        stop = _without_brackets(text, at, start, stop)
        # As in a message: `token=abc: permission denied`.
        stop -= text[start:stop].endswith(":")
    secret = text[start:stop]
    # In code, the name of a variable: `password=password`, `token=self.token`.
    if secret.rpartition(".")[2] == name.rpartition(".")[2] and value.lastgroup == "bare":
        return None
    if (
        is_key
        and in_repr
        and not _looks_generated(secret)
        and _VALUE_FIELD.search(text, stop, stop + 20)
    ):
        return None  # of {"key": "token", "value": "…"}
    if match["pair"]:
        # In {"name": "TOKEN", "value": "…"}, the string is another name.
        if _COLON.match(text, value.end()):
            return None
        # In a key of Dask, these are words of analyses too.
        is_tuple = text.startswith("(") and not any(map(_IN_KEY.fullmatch, words))
        if is_tuple and not _looks_generated(secret):
            return None
    is_dask_key = is_key and in_repr and _DASK_KEY.fullmatch(secret)
    # A number is a count or a weight.
    is_weight = _is_of_analysis(words) and ("." in secret or len(secret) < 4)
    is_count = _counts(name) or (is_weight and words != ["pass"] and words[0] != "sig")
    is_decimal = _DECIMAL.fullmatch(secret) and not any(map(_IN_KEY.fullmatch, words))
    is_count |= bool(is_decimal or _COUNTED.fullmatch(words[-1]))
    is_number = _NUMBER.fullmatch(secret) and is_count
    return None if is_dask_key or is_number else (start, stop)


def _without_brackets(text: str, at: int, start: int, stop: int) -> int:
    """Return the stop of a value, before a bracket that was opened before its name."""
    before, depth = text[max(0, at - _BESIDE) : at], 0
    for bracket in _BRACKET.finditer(text, start, stop):
        if (character := bracket[0]) in "([{":
            depth += 1
        elif character in ")]}":
            opening = "([{"[")]}".index(character)]
            if not depth and before.count(opening) > before.count(character):
                return bracket.start()
            depth = max(depth - 1, 0)
    return stop
