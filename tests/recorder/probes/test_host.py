"""Samples of hosts: which process takes them."""

import multiprocessing
import os
import sys
import time
from itertools import pairwise

import cloudpickle
import pytest

import roast_recorder
from roast_analyze import Trace
from roast_recorder.probes import host
from roast_recorder.probes.host import FIRST_SAMPLE_SECONDS, HostSampler

# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_one_process_samples_until_it_leaves():
    first, second, third = (HostSampler("turns") for _ in range(3))
    another = HostSampler("another recording")

    assert [sampler.take() is None for sampler in (first, second, third)] == [False, True, True]
    assert first.take() is not None
    assert another.take() is not None
    first.close()
    first.close()
    assert [sampler.take() is None for sampler in (third, second)] == [False, True]
    for sampler in (third, another):
        sampler.close()


def _sample_and_die(sampled):
    sampler = HostSampler("killed")
    assert sampler.take() is not None
    sampled.set()
    time.sleep(60)


def test_another_process_samples_after_a_kill():
    context = multiprocessing.get_context("spawn")
    sampled = context.Event()
    process = context.Process(target=_sample_and_die, args=(sampled,))
    process.start()
    assert sampled.wait(60)
    other = HostSampler("killed")
    assert other.take() is None

    process.kill()
    process.join()

    assert other.take() is not None
    other.close()


def test_the_scheduler_samples_while_no_worker_does():
    scheduler, worker = HostSampler("shared", is_scheduler=True), HostSampler("shared")

    assert scheduler.take() is not None
    assert worker.take() is not None
    assert scheduler.take() is None
    worker.close()
    assert scheduler.take() is not None


def test_without_abstract_addresses_only_the_scheduler_samples(monkeypatch):
    monkeypatch.setattr(host, "HAS_TURNS", False)

    assert HostSampler("x").take() is None
    assert HostSampler("x", is_scheduler=True).take() is not None


@pytest.mark.cluster
def test_a_host_is_sampled_once_and_by_another_worker_after_the_first_has_left(
    own_cluster, trace, by_kind
):
    def of_workers():
        return [line for line in by_kind(trace)["host_sample"] if "worker" in line]

    def until(condition):
        deadline = time.monotonic() + 30
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.1)

    with (
        own_cluster(3) as (_, client),
        roast_recorder.record(client, trace, host_interval_seconds=1.0),
    ):
        until(lambda: len(of_workers()) >= 3)
        [first] = {line["worker"] for line in of_workers()}
        client.retire_workers([first])
        until(lambda: len({line["worker"] for line in of_workers()}) > 1)

    samples = of_workers()
    [_, second] = dict.fromkeys(line["worker"] for line in samples)
    before, after = (
        [line["metrics"]["clock_seconds"] for line in samples if line["worker"] == worker]
        for worker in (first, second)
    )
    assert before[-1] < after[0]
    # One worker takes a sample each second, and the last one at its end.
    assert all(after - before > 0.9 for before, after in pairwise(before[:-1]))
    assert {line["host"] for line in samples} == {os.uname().nodename}
    assert not by_kind(trace)["loss"]


@pytest.mark.cluster
def test_the_host_of_a_scheduler_without_workers(own_cluster, trace, by_kind):
    with own_cluster(0) as (_, client), roast_recorder.record(client, trace):
        time.sleep(FIRST_SAMPLE_SECONDS + 0.5)

    samples = by_kind(trace)["host_sample"]
    assert [line.get("worker") for line in samples] == [None] * len(samples)
    assert len(samples) >= 2  # the last one at the end


@pytest.mark.cluster
def test_hosts_are_not_sampled_without_the_kind(client, trace, by_kind):
    with roast_recorder.record(client, trace, kinds=["task", "transition"]):
        client.submit(sum, [1]).result()

    assert not by_kind(trace)["host_sample"]


def _use_a_core(ended):
    while not ended.is_set():
        for _ in range(100_000):
            pass


def _compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_a_host_beside_busy_programs(own_cluster, trace):
    """Twice as many programs as cores compute beside the workers."""
    ended = multiprocessing.Event()
    programs = [
        multiprocessing.Process(target=_use_a_core, args=(ended,), daemon=True)
        for _ in range(2 * os.cpu_count())
    ]
    with own_cluster(2) as (_, client):
        for program in programs:
            program.start()
        try:
            with roast_recorder.record(client, trace, host_interval_seconds=1.0):
                client.gather(client.map(_compute, [0.5] * 4, pure=False))
        finally:
            ended.set()
            for program in programs:
                program.join()

    with Trace(trace) as opened:
        [(host, sentence)] = opened.rows(
            "SELECT entity, sentence FROM findings WHERE id = 'starved-host'"
        )
        [(busy, cores)] = opened.rows(
            "SELECT max(cpu_percent) / 100, any_value(cores) FROM host_samples"
        )
        loaded = opened.rows("SELECT host FROM _host_load WHERE is_loaded")
    assert loaded == [(host,)] == [(os.uname().nodename,)]
    assert sentence.startswith(f"No core of host {host} was free for ")
    assert busy > 0.8 * cores
