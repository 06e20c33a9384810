"""Compare the findings of recorded illnesses with what was injected.

    python examine.py FOLDER [NAME …]

Prints a table of all recordings of ``record.py`` in a folder: the expected and the first
finding, and the stated range of the saving beside the true difference of the pair. A run with
several illnesses is right if the first finding is one of them. The exit code is 1 if a target
is missed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import roast_analyze

#: Minimum shares of correctly named illnesses, and of bracketed savings.
NAMED_TARGET = 0.90
BRACKETED_TARGET = 0.80

#: Largest difference of stated and true core seconds.
CORE_TOLERANCE = 0.25

#: Severities that a healthy control may have.
HARMLESS = ("minor", "note")

Finding = dict[str, Any]


@dataclass
class Recording:
    """A recording, what was injected, and its findings in the order of their rank."""

    form: str
    facts: dict[str, Any]
    findings: list[Finding]
    core_seconds: float

    @property
    def first(self) -> Finding | None:
        return self.findings[0] if self.findings else None

    @property
    def found(self) -> list[tuple[dict, Finding | None]]:
        """Return the first finding that names each cause."""
        return [
            (cause, next((find for find in self.findings if names(find, cause)), None))
            for cause in self.facts["causes"]
        ]

    @property
    def is_right(self) -> bool:
        """Return whether the first finding names an injected cause."""
        return self.first is not None and any(
            names(self.first, cause) for cause in self.facts["causes"]
        )


def read(path: Path) -> Recording:
    """Read a recording and what was injected."""
    facts = json.loads(path.with_suffix(".json").read_text())
    with roast_analyze.Trace(path) as trace:
        findings = trace.frame("findings").sort("rank").to_dicts()
        [[core_seconds]] = trace.sql("SELECT sum(seconds) FROM core_time").fetchall()
    return Recording(path.stem, facts, findings, core_seconds)


def names(finding: Finding, cause: dict) -> bool:
    """Return whether a finding names a cause and its entity."""
    if finding["id"] not in cause["ids"]:
        return False
    entity = str(finding["entity"])
    # An entity may be a path, an address or a key, of which a part is expected.
    parts = {entity, *re.split(r"[/:,\s]+", entity), entity.partition("-")[0]}
    return not cause["entities"] or bool(parts & set(cause["entities"]))


def saving(finding: Finding, kind: str, true_seconds: float) -> tuple[str, bool]:
    """Return the stated saving as text, and whether it agrees with the true one."""
    if kind == "core":
        stated = finding["core_seconds"] or 0.0
        is_near = abs(stated - true_seconds) <= CORE_TOLERANCE * true_seconds
        return f"{stated:.1f} core", is_near
    least, most = finding["wall_seconds_min"], finding["wall_seconds_max"]
    if least is None:
        return "not known", False
    if most is None:
        return f"at least {least:.1f}", least <= true_seconds
    return f"{least:.1f} to {most:.1f}", least <= true_seconds <= most


def describe(finding: Finding | None) -> str:
    if finding is None:
        return "none"
    entity = "" if finding["entity"] is None else f" {finding['entity']}"
    return f"{finding['id']}{entity} ({finding['severity']})"


def row(recording: Recording, twin: Recording | None) -> tuple[list[str], bool | None]:
    """Return a line of the table, and whether the saving is bracketed, if it was measured."""
    expected = "; ".join(
        " or ".join(cause["ids"]) + "".join(f" {entity}" for entity in cause["entities"])
        for cause in recording.facts["causes"]
    )
    cells = [recording.form, expected, describe(recording.first)]
    ranks = [str(find["rank"]) if find else "-" for _, find in recording.found]
    cells += ["right" if recording.is_right else "**wrong**", ", ".join(ranks)]
    kind = recording.facts["saves"]
    if twin is None or kind is None:
        return [*cells, "", "", ""], None
    true_seconds = recording.facts["wall_seconds"] - twin.facts["wall_seconds"]
    if kind == "core":
        true_seconds = recording.core_seconds - twin.core_seconds
    cells.append(f"{true_seconds:.1f}")
    # A twin has no illness, so with several illnesses no single finding has the whole saving.
    if len(recording.facts["causes"]) > 1:
        return [*cells, "", ""], None
    [(_, find)] = recording.found
    if find is None:
        return [*cells, "", "**no**"], False
    stated, agrees = saving(find, kind, true_seconds)
    return [*cells, stated, "yes" if agrees else "**no**"], agrees


def print_table(header: list[str], rows: list[list[str]]) -> None:
    print("|", " | ".join(header), "|")
    print("|", " | ".join("---" for _ in header), "|")
    for cells in rows:
        print("|", " | ".join(cells), "|")
    print()


def share(right: list[bool]) -> float:
    return sum(right) / len(right) if right else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all recordings, if none")
    arguments = parser.parse_args()
    recordings = {
        path.stem: read(path)
        for path in sorted(arguments.folder.glob("*.jsonl"))
        if path.with_suffix(".json").exists()
        and (not arguments.names or path.stem.removesuffix("_healthy") in arguments.names)
    }
    ill = [recording for recording in recordings.values() if recording.facts["ill"]]
    lines, bracketed = [], []
    for recording in ill:
        cells, agrees = row(recording, recordings.get(f"{recording.form}_healthy"))
        lines.append(cells)
        bracketed += [] if agrees is None else [agrees]
    print_table(
        [
            *["recording", "expected", "first finding", "named", "rank"],
            *["true saving (s)", "stated (s)", "bracketed"],
        ],
        lines,
    )
    healthy = [recording for recording in recordings.values() if not recording.facts["ill"]]
    alarms = {
        recording.form: [
            find for find in recording.findings if find["severity"] not in HARMLESS
        ]
        for recording in healthy
    }
    print_table(
        ["healthy recording", "findings above minor"],
        [[form, "; ".join(map(describe, found)) or "none"] for form, found in alarms.items()],
    )
    named = [recording.is_right for recording in ill]
    controls = [form for form in alarms if not recordings[form].facts["causes"]]
    alarmed = [form for form in controls if alarms[form]]
    twins = [form for form in alarms if form not in controls]
    alarmed_twins = [form for form in twins if alarms[form]]
    print(f"named right: {sum(named)} of {len(named)} ({100 * share(named):.0f} %)")
    print(f"bracketed: {sum(bracketed)} of {len(bracketed)} ({100 * share(bracketed):.0f} %)")
    print(f"controls with a finding above minor: {len(alarmed)} of {len(controls)}")
    print(f"healthy twins with a finding above minor: {len(alarmed_twins)} of {len(twins)}")
    is_met = share(named) >= NAMED_TARGET and share(bracketed) >= BRACKETED_TARGET
    return 0 if is_met and not alarmed else 1


if __name__ == "__main__":
    sys.exit(main())
