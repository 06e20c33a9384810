"""Measure false alarms and misses of ``roast-analyze gate`` on real runs.

    python benchmarks/gate.py [--runs 20] [--slowdown 0.2]

A program of sleeping tasks runs repeatedly, each time on a new LocalCluster, alternating with a
program whose tasks take longer by the slowdown. Each run is compared with all other runs of the
same program and should pass; each slow run is compared with all of them and should fail. Both
are repeated with three bases and with one. The exit code is 1 if more than one in 20 runs
fails, or if a slow run passes.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from distributed import Client, LocalCluster

import roast_recorder
from roast_analyze import Trace
from roast_analyze.algorithms.regression import compare, parse_rule
from roast_analyze.commands.gate import DEFAULT_RULES
from roast_analyze.metrics import METRICS, read_metrics

TASKS, TASK_SECONDS, WORKERS = 20, 1.0, 2


RULE = parse_rule(DEFAULT_RULES[0], METRICS)


def record_run(path: Path, task_seconds: float) -> float:
    """Run and record the program; return the metric of the default rule."""
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, path),
    ):
        client.gather(client.map(time.sleep, [task_seconds] * TASKS, pure=False))
    with Trace(path, cache=False) as trace:
        return float(read_metrics(trace)[RULE.metric])


def fails(bases: Sequence[float], new: float) -> bool:
    """Return whether the default rule fails."""
    return RULE.fails(compare(RULE.metric, bases, [new]))


def main() -> int:
    """Run the programs and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--slowdown", type=float, default=0.2)
    options = parser.parse_args()
    same, slow = [], []
    with TemporaryDirectory() as folder:
        for number in range(options.runs):
            path = Path(folder) / f"{number}.jsonl.zst"
            same.append(record_run(path, TASK_SECONDS))
            slow.append(record_run(path, TASK_SECONDS * (1 + options.slowdown)))
            print(f"run {number + 1}: {same[-1]:.3f} s, slow {slow[-1]:.3f} s", flush=True)
    rest = [same[:i] + same[i + 1 :] for i in range(len(same))]
    alarms = sum(map(fails, rest, same))
    caught = sum(fails(same, value) for value in slow)
    print(f"rule: {RULE.text}")
    print(f"{len(same) - 1} bases: {alarms} of {len(same)} runs fail, "
          f"{caught} of {len(slow)} slow runs fail")  # fmt: skip
    draw = random.Random(1)
    triples = [draw.sample(range(len(same)), 4) for _ in range(1_000)]
    alarms_3 = sum(fails([same[i] for i in triple[1:]], same[triple[0]]) for triple in triples)
    caught_3 = sum(fails([same[i] for i in t[1:]], draw.choice(slow)) for t in triples)
    print(f"3 bases: {alarms_3} of 1000 runs fail, {caught_3} of 1000 slow runs fail")
    pairs = list(itertools.permutations(same, 2))
    print(f"1 base: {sum(fails([a], b) for a, b in pairs)} of {len(pairs)} runs fail, "
          f"{sum(fails([a], b) for a, b in itertools.product(same, slow))} of "
          f"{len(same) * len(slow)} slow runs fail")  # fmt: skip
    return int(alarms > len(same) / 20 or caught < len(slow))


if __name__ == "__main__":
    sys.exit(main())
