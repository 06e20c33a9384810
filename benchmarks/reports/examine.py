"""Compare the findings about reported situations with the right answers.

    python examine.py FOLDER [NAME …]

Prints a line for each recording of ``record.py`` in a folder. A situation is answered

- fully, if a finding names the cause, its entity and the measured time, in required words;
- partly, if a finding names the cause, but lacks one of these;
- not, if no finding names the cause;
- wrongly, if a finding above minor has another id, or wrong words.

The exit code is 1 if less than 90 % are answered fully, or any wrongly.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import roast_analyze

#: Minimum share of situations that are answered fully.
FULL_TARGET = 0.90

#: Largest ratio of a stated and the measured time.
MAX_RATIO = 1.25

#: Severities of findings that blame nothing. A note can answer: it has no saving.
HARMLESS = ("minor", "note")

#: Words of findings that are true of the machine on which the programs were recorded.
OF_THE_MACHINE = "no core of host|no core was free"

Finding = dict[str, Any]


def has(pattern: str, finding: Finding) -> bool:
    """Return whether a word of the sentence or the advice begins as the pattern."""
    text = f"{finding['sentence']} {finding['change']}"
    return re.search(rf"\b(?:{pattern})", text, re.IGNORECASE) is not None


def names_entity(finding: Finding, entities: list[str]) -> bool:
    """Return whether an accepted name is a part of the entity, or in the sentence."""
    parts = re.split(r"[/:,\s]+", str(finding["entity"]))
    accepted = {*parts, *(part.partition("-")[0] for part in parts)} & set(entities)
    return bool(accepted) or any(has(rf"{re.escape(name)}\b", finding) for name in entities)


def states(finding: Finding, seconds: float) -> bool:
    """Return whether one of the stated times is about the measured one."""
    units = {"s": 1, "core-s": 1, "core-seconds": 1, "ms": 0.001, "min": 60}
    stated = [
        float(number.replace(",", "")) * units[unit]
        for number, unit in re.findall(
            r"(\d[\d,]*\.?\d*) (core-seconds|core-s|s|ms|min)\b", finding["sentence"]
        )
    ]
    if sampled := re.match(r"For ([\d,.]+) of [\d,.]+ sampled seconds", finding["sentence"]):
        stated.append(float(sampled[1].replace(",", "")))
    stated.append(finding["core_seconds"] or 0.0)
    return any(seconds / MAX_RATIO <= number <= seconds * MAX_RATIO for number in stated)


def missing(finding: Finding, facts: dict[str, Any]) -> list[str]:
    """Return what a finding that names the cause lacks."""
    answer = facts["answer"]
    lacks = [f"word {word}" for word in answer["words"] if not has(word, finding)]
    if answer["entities"] and not names_entity(finding, answer["entities"]):
        lacks.append(f"entity {answer['entities'][0]}")
    if facts["true_seconds"] and not states(finding, facts["true_seconds"]):
        lacks.append(f"{facts['true_seconds']:.1f} s")
    if finding["severity"] == "minor":
        lacks.append("severity above minor")
    return lacks


def judge(facts: dict[str, Any], findings: list[Finding]) -> tuple[str, str]:
    """Return how a situation is answered, and why."""
    answer = facts["answer"]
    accepted = {*answer["ids"], *answer["consequences"]}
    blaming = [find for find in findings if find["severity"] not in HARMLESS]
    for find in blaming:
        if find["id"] not in accepted and not has(OF_THE_MACHINE, find):
            return "wrongly", f"{find['id']} {find['entity'] or ''}".strip()
        for word in answer["wrong_words"]:
            if has(word, find):
                return "wrongly", f"{find['id']}: {word}"
    if not answer["ids"]:
        return "fully", ""
    naming = [find for find in findings if find["id"] in answer["ids"]]
    if not naming:
        return "not", f"no {' or '.join(answer['ids'])}"
    lacks = min((missing(find, facts) for find in naming), key=len)
    return ("partly", ", ".join(lacks)) if lacks else ("fully", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all recordings, if none")
    arguments = parser.parse_args()
    answers: Counter[str] = Counter()
    print("| situation | answered | lacks or blames | measured (s) | first finding |")
    print("| --- | --- | --- | --- | --- |")
    for path in sorted(arguments.folder.glob("*.jsonl")):
        if arguments.names and path.stem not in arguments.names:
            continue
        if not path.with_suffix(".json").exists():
            continue
        facts = json.loads(path.with_suffix(".json").read_text())
        with roast_analyze.Trace(path) as trace:
            findings = trace.frame("findings").sort("rank").to_dicts()
        answered, why = judge(facts, findings)
        answers[answered] += 1
        first = "none"
        if findings:
            first = (
                f"{findings[0]['id']} ({findings[0]['severity']}): {findings[0]['sentence']}"
            )
        measured = "" if facts["true_seconds"] is None else f"{facts['true_seconds']:.1f}"
        print(f"| {path.stem} | {answered} | {why} | {measured} | {first} |")
    print()
    print(", ".join(f"{answered} {number}" for answered, number in answers.most_common()))
    is_met = answers["fully"] >= FULL_TARGET * answers.total() and not answers["wrongly"]
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
