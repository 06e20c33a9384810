"""Facts and reports of runs, which are kept on disk until their trace changes."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import xxhash

import roast_analyze
from roast_analyze.open.cache import ABANDONED_SECONDS, evict, make_private
from roast_analyze.open.views import definitions_digest
from roast_analyze.output_paths import replacing
from roast_analyze.server.facts import Facts

#: Form of a stamp.
STAMP: Final = re.compile("[0-9a-f]{16}")


@cache
def _code_digest() -> str:
    """Return a digest of what determines facts and reports, apart from the trace."""
    package = Path(roast_analyze.__file__).parent
    # Not what Python compiles when a module is imported for the first time.
    files = sorted(
        path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"
    )
    states = [(str(it.relative_to(package)), it.stat().st_mtime_ns) for it in files]
    return xxhash.xxh3_128_hexdigest(f"{definitions_digest()}{states}".encode())


@dataclass(frozen=True)
class Kept:
    """What is kept of a run while its files have the sizes and times of a stamp."""

    folder: Path
    stamp: str

    @classmethod
    def of(cls, cache_folder: Path, key: str, stamp: str) -> Kept:
        """Return what is kept of a run with an identity, in an entry of a cache."""
        text = f"{_code_digest()}\0{key}".encode(errors="surrogateescape")
        return cls(cache_folder / xxhash.xxh3_128_hexdigest(text), stamp)

    def at(self, stamp: str) -> Kept:
        """Return what is kept of the run for another stamp."""
        return replace(self, stamp=stamp)

    @property
    def report(self) -> Path:
        """The path of the report."""
        return self.folder / f"report-{self.stamp}.html"

    @property
    def _facts(self) -> Path:
        return self.folder / f"facts-{self.stamp}.json"

    def read_facts(self) -> Facts | None:
        """Return the facts; None if they are not kept."""
        try:
            return Facts(**json.loads(self._facts.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write_facts(self, facts: Facts) -> None:
        """Keep the facts, and remove what is kept of older versions of the trace."""
        make_private(self.folder)
        with replacing(self._facts) as path:
            path.write_text(json.dumps(asdict(facts)), encoding="utf-8")
        for old in self.folder.iterdir():
            with suppress(OSError):
                is_draft = old.suffix == ".part"
                age = time.time() - old.stat().st_mtime
                if self.stamp not in old.name and (not is_draft or age > ABANDONED_SECONDS):
                    old.unlink()
        evict(keep=self.folder)

    def touch(self) -> None:
        """Record that the report was used."""
        with suppress(OSError):
            os.utime(self.report)
