"""The buffer: nothing lost unsaid, nothing kept without bound."""

import random
from collections import Counter

import pytest

from roast_recorder.scheduler import buffer as buffers
from roast_recorder.scheduler import wire_format as rows
from roast_recorder.scheduler.buffer import (
    BATCHES_PER_PULL,
    EVENTS,
    FACTS,
    ODD,
    ROWS_PER_BATCH,
    SAMPLES,
    TOO_MUCH,
    Buffer,
    opened,
)
from roast_recorder.scheduler.wire_format import FINE_METRICS, RECORD, WORKER_SAMPLE

PLENTY = 10**8

KINDS = {SAMPLES: "sample", EVENTS: "event", FACTS: "fact"}


def row(number, lane=FACTS, payload=""):
    return (RECORD, float(number), KINDS[lane], {"payload": payload})


def transition(number, key="k"):
    return (float(number), key, "released", "waiting", "s")


def rows_of(batches):
    return [item for batch in batches for item in rows.decode(opened(batch))[1]]


def numbers(batches):
    """Which of the rows made by `row` there are, in order."""
    return [int(item[1]) for item in rows_of(batches) if rows.kind_of(item) != "loss"]


def losses(batches):
    """What is told as lost: how many, from when to when, by reason and kind."""
    return {
        (fields["reason"], fields["record_kind"]): (
            fields["records"],
            fields["start_t"],
            fields["stop_t"],
        )
        for _, _, kind, fields in rows_of(batches)
        if kind == "loss"
    }


def nbytes_of(*waiting):
    return len(rows.encode([], list(waiting))[0])


def seal(buffer, *numbers, lane=FACTS, payload=""):
    """Have one batch of these rows."""
    for number in numbers:
        buffer.append(row(number, lane, payload), lane)
    buffer.seal()


def as_large_as_it_is(monkeypatch):
    """Let nothing become smaller, so that the sizes of batches can be reckoned with."""
    monkeypatch.setattr(buffers.rows, "compress", bytes)
    monkeypatch.setattr(buffers.rows, "decompress", bytes)


def pull_all(buffer):
    pulled, received = [], 0
    while batches := buffer.pull(received):
        pulled += batches
        received = batches[-1].number
    return pulled


# -- handing over ---------------------------------------------------------------------------


def test_rows_come_out_in_order():
    buffer = Buffer(PLENTY)
    for number in range(3):
        buffer.append(row(number))

    assert numbers(buffer.pull(received=0)) == [0, 1, 2]


def test_transitions_come_out_as_they_went_in():
    buffer = Buffer(PLENTY)
    hook = buffer.transitions
    hook.extend(transition(1))
    buffer.append(row(2))
    [first] = buffer.pull(received=0)
    hook.extend(transition(3))
    [_, second] = buffer.pull(received=0)

    assert rows.decode(opened(first)) == ([*transition(1)], [row(2)])
    assert rows.decode(opened(second)) == ([*transition(3)], [])


def test_each_lane_has_a_batch_of_its_own_facts_first():
    buffer = Buffer(PLENTY)
    buffer.append(row(1, SAMPLES), SAMPLES)
    buffer.append(row(2, EVENTS), EVENTS)
    buffer.append(row(3, FACTS), FACTS)
    buffer.append(row(4))

    batches = buffer.pull(received=0)

    assert [batch.lane for batch in batches] == [FACTS, EVENTS, SAMPLES]
    assert [numbers([batch]) for batch in batches] == [[3, 4], [2], [1]]


def test_a_batch_stays_until_it_is_acknowledged():
    buffer = Buffer(PLENTY)
    buffer.append(row(1))
    [first] = buffer.pull(received=0)
    buffer.append(row(2))

    [again, second] = buffer.pull(received=0)
    assert again == first, "the first answer may have been lost"
    assert buffer.pull(received=first.number) == [second]
    assert not buffer.empty
    assert buffer.pull(received=second.number) == []
    assert buffer.empty


@pytest.mark.parametrize(
    "wait",
    [
        lambda buffer: buffer.append(row(1)),
        lambda buffer: buffer.append(row(1, SAMPLES), SAMPLES),
        lambda buffer: buffer.transitions.extend(transition(1)),
        seal,
        lambda buffer: seal(buffer, 1),
    ],
    ids=["row", "sample", "transition", "nothing", "batch"],
)
def test_a_buffer_is_empty_when_nothing_waits(wait):
    buffer = Buffer(PLENTY)
    assert buffer.empty

    wait(buffer)

    assert buffer.empty == (wait is seal)


def test_a_loss_that_is_not_told_yet_waits_too():
    buffer = Buffer(limit_bytes=1)

    seal(buffer, 1)

    assert not buffer.empty


def test_so_many_rows_are_encoded_at_once():
    buffer = Buffer(PLENTY)
    for number in range(2 * ROWS_PER_BATCH + 1):
        buffer.append(row(number))

    batches = buffer.pull(received=0)

    assert [len(rows_of([batch])) for batch in batches] == [ROWS_PER_BATCH, ROWS_PER_BATCH, 1]


def test_a_pull_takes_so_many_batches_and_the_next_the_rest():
    buffer = Buffer(PLENTY)
    total = (BATCHES_PER_PULL + 2) * ROWS_PER_BATCH + 1
    for number in range(total):
        buffer.append(row(number))

    first = buffer.pull(received=0)
    assert len(first) == BATCHES_PER_PULL
    assert buffer.pull(received=0) == first
    assert buffer.crowded
    assert numbers(pull_all(buffer)) == list(range(total))
    assert buffer.empty


def test_the_last_pull_leaves_nothing():
    buffer = Buffer(PLENTY)
    total = (BATCHES_PER_PULL + 2) * ROWS_PER_BATCH + 1
    buffer.transitions.extend(transition(0))
    for number in range(total):
        buffer.append(row(number))
    buffer.append(row(total, SAMPLES), SAMPLES)

    batches = buffer.pull(received=0, everything=True)

    assert numbers(batches) == list(range(total + 1))
    assert buffer.pull(received=batches[-1].number) == []
    assert buffer.empty


def test_the_last_pull_gives_what_was_handed_over_but_not_acknowledged_again():
    buffer = Buffer(PLENTY)
    seal(buffer, 1)
    seal(buffer, 2)
    [first, second] = buffer.pull(received=0)
    seal(buffer, 3)

    assert numbers(buffer.pull(first.number, everything=True)) == [2, 3]
    assert buffer.pull(second.number)[0].number > second.number


def test_what_was_handed_over_does_not_crowd():
    buffer = Buffer(PLENTY)
    buffer.append(row(1))
    buffer.append(row(2, SAMPLES), SAMPLES)
    assert len(buffer.pull(received=0)) == 2

    assert not buffer.crowded


# -- the limit ------------------------------------------------------------------------------


@pytest.mark.parametrize(("spare", "kept"), [(0, [1]), (-1, [])])
def test_a_batch_that_just_fits_is_kept(spare, kept):
    buffer = Buffer(nbytes_of(row(1)) + spare)
    seal(buffer, 1)

    assert numbers(buffer.pull(received=0)) == kept


@pytest.mark.parametrize(
    ("waiting", "comes", "gone"),
    [
        ([SAMPLES, EVENTS, FACTS], FACTS, [0]),
        ([EVENTS, SAMPLES, FACTS], FACTS, [1]),
        ([FACTS, EVENTS, SAMPLES], EVENTS, [2]),
        ([FACTS, EVENTS, FACTS], FACTS, [1]),
        ([FACTS, EVENTS, SAMPLES], SAMPLES, [3]),
        ([FACTS, EVENTS, FACTS], EVENTS, [3]),
        ([FACTS, FACTS, FACTS], FACTS, [3]),
        ([SAMPLES, SAMPLES, EVENTS], FACTS, [0]),
    ],
)
def test_the_least_valuable_go_first_and_of_those_the_oldest(monkeypatch, waiting, comes, gone):
    as_large_as_it_is(monkeypatch)
    # Kinds of different length take different room.
    monkeypatch.setitem(KINDS, FACTS, "factum")
    monkeypatch.setitem(KINDS, EVENTS, "events")
    buffer = Buffer(3 * nbytes_of(row(1)))

    for number, lane in enumerate([*waiting, comes]):
        seal(buffer, number, lane=lane)

    batches = buffer.pull(received=0)
    assert numbers(batches) == [number for number in range(4) if number not in gone]
    [(count, start_t, stop_t)] = losses(batches).values()
    assert (count, start_t, stop_t) == (1, gone[0], gone[0])


def test_no_more_goes_than_must(monkeypatch):
    as_large_as_it_is(monkeypatch)
    small = nbytes_of(row(0, SAMPLES))
    buffer = Buffer(10 * small)
    for number in range(10):
        seal(buffer, number, lane=SAMPLES)

    # It needs the room of two: of one, and a part of the next.
    seal(buffer, 10, payload="x" * (small // 2))

    assert numbers(buffer.pull(0, everything=True)) == [*range(2, 10), 10]


def test_nothing_goes_where_it_would_not_help(monkeypatch):
    as_large_as_it_is(monkeypatch)
    buffer = Buffer(2 * nbytes_of(row(1)))
    seal(buffer, 1, lane=SAMPLES)
    seal(buffer, 2, payload="x" * 1_000)

    batches = buffer.pull(received=0)

    assert numbers(batches) == [1]
    assert losses(batches) == {(TOO_MUCH, "fact"): (1, 2.0, 2.0)}


def test_what_was_handed_over_never_goes(monkeypatch):
    as_large_as_it_is(monkeypatch)
    buffer = Buffer(2 * nbytes_of(row(1, SAMPLES)))
    seal(buffer, 1, lane=SAMPLES)
    handed_over = buffer.pull(received=0)
    seal(buffer, 2, lane=SAMPLES)
    seal(buffer, 3)
    seal(buffer, 4)

    batches = buffer.pull(received=0)

    assert batches[:1] == handed_over
    assert numbers(batches) == [1, 3]
    assert losses(batches) == {
        (TOO_MUCH, "sample"): (1, 2.0, 2.0),
        (TOO_MUCH, "fact"): (1, 4.0, 4.0),
    }


def test_there_is_room_again_after_an_acknowledgement():
    buffer = Buffer(nbytes_of(row(1)))
    seal(buffer, 1)
    [first] = buffer.pull(received=0)
    seal(buffer, 2)
    [told] = buffer.pull(received=first.number)
    assert buffer.pull(received=told.number) == []

    seal(buffer, 3)

    assert numbers(buffer.pull(received=told.number)) == [3]


# -- compression ----------------------------------------------------------------------------


def test_batches_are_compressed_when_much_waits():
    payload = "much the same " * 100
    nbytes = nbytes_of(row(0, payload=payload))
    # A sixteenth is just less than two batches.
    buffer = Buffer(2 * 16 * nbytes - 16)
    for number in range(5):
        seal(buffer, number, payload=payload)

    batches = buffer.pull(received=0)

    assert [batch.compressed for batch in batches] == [False, False, True, True, True]
    assert len(batches[2].content) < len(batches[1].content) / 5
    assert numbers(batches) == [0, 1, 2, 3, 4]


def test_a_batch_that_does_not_fit_is_kept_if_it_does_compressed():
    buffer = Buffer(2_000)

    seal(buffer, 1, payload="x" * 10_000)

    [batch] = buffer.pull(received=0)
    assert batch.compressed
    assert numbers([batch]) == [1]


def test_nothing_is_compressed_while_somebody_keeps_up():
    payload = "much the same " * 100
    buffer = Buffer(16 * nbytes_of(row(0, payload=payload)))
    received = 0
    for number in range(40):
        seal(buffer, number, payload=payload)
        [batch] = buffer.pull(received)
        received = batch.number
        assert not batch.compressed


def test_of_a_compressed_batch_that_goes_every_record_is_counted(monkeypatch):
    monkeypatch.setattr(buffers, "COMPRESS_BEYOND", 0)
    payload = random.Random(1).randbytes(500).hex()
    buffer = Buffer(2_000)
    seal(buffer, 1, lane=EVENTS)
    seal(buffer, 2, 3, 4, lane=SAMPLES, payload=payload)
    seal(buffer, 5, payload=random.Random(2).randbytes(1_500).hex())

    batches = buffer.pull(received=0)

    assert [batch.compressed for batch in batches] == [False, True, False]
    assert numbers(batches) == [1, 5]
    assert losses(batches) == {(TOO_MUCH, "sample"): (3, 2.0, 4.0)}


# -- losses ---------------------------------------------------------------------------------


def test_losses_are_counted_by_kind_from_the_first_to_the_last():
    buffer = Buffer(limit_bytes=1)
    deltas = {("execute", "span", "x", "compute", "seconds"): 1.0, ("gather", "a", "b"): 2.0}
    buffer.transitions.extend([*transition(5), *transition(3), *transition(9)])
    buffer.append(row(7))
    buffer.append((FINE_METRICS, 8.0, "w", "id", deltas))
    buffer.append((WORKER_SAMPLE, 2.0, "w", "id"), SAMPLES)
    buffer.seal()
    buffer.append(row(4))
    buffer.append(row(6, EVENTS), EVENTS)
    buffer.seal()

    assert losses(buffer.pull(received=0)) == {
        (TOO_MUCH, "transition"): (3, 3.0, 9.0),
        (TOO_MUCH, "fact"): (2, 4.0, 7.0),
        (TOO_MUCH, "fine_metric"): (2, 8.0, 8.0),
        (TOO_MUCH, "worker_sample"): (1, 2.0, 2.0),
        (TOO_MUCH, "event"): (1, 6.0, 6.0),
    }


def test_a_loss_is_told_once_and_again_only_if_the_answer_was_lost():
    buffer = Buffer(limit_bytes=1)
    seal(buffer, 1)
    [told] = buffer.pull(received=0)
    assert losses([told]) == {(TOO_MUCH, "fact"): (1, 1.0, 1.0)}
    seal(buffer, 2)

    [again, more] = buffer.pull(received=0)

    assert again == told
    assert losses([more]) == {(TOO_MUCH, "fact"): (1, 2.0, 2.0)}
    assert buffer.pull(received=more.number) == []
    assert buffer.empty


def test_a_loss_is_told_although_all_is_full():
    buffer = Buffer(nbytes_of(row(1)))
    seal(buffer, 1)
    seal(buffer, 2)

    batches = buffer.pull(received=0)

    assert numbers(batches) == [1]
    assert losses(batches) == {(TOO_MUCH, "fact"): (1, 2.0, 2.0)}


def test_a_loss_waits_for_its_turn_behind_many_batches(monkeypatch):
    as_large_as_it_is(monkeypatch)
    buffer = Buffer((BATCHES_PER_PULL + 1) * nbytes_of(row(1)))
    for number in range(BATCHES_PER_PULL + 2):
        seal(buffer, number)
    first = buffer.pull(received=0)
    assert losses(first) == {}

    second = buffer.pull(received=first[-1].number)

    assert numbers(first + second) == list(range(BATCHES_PER_PULL + 1))
    number = float(BATCHES_PER_PULL + 1)
    assert losses(second) == {(TOO_MUCH, "fact"): (1, number, number)}


def test_the_last_pull_tells_what_did_not_fit_any_more():
    buffer = Buffer(nbytes_of(row(1)))
    seal(buffer, 1)
    buffer.append(row(2))

    batches = buffer.pull(received=0, everything=True)

    assert numbers(batches) == [1]
    assert losses(batches) == {(TOO_MUCH, "fact"): (1, 2.0, 2.0)}
    assert buffer.pull(received=batches[-1].number) == []
    assert buffer.empty


def test_what_cannot_be_encoded_is_told_too():
    class Impossible:
        @property
        def __class__(self):
            raise RuntimeError("not even its class")

    buffer = Buffer(PLENTY)
    seal(buffer, 1)
    seal(buffer, 2, lane=EVENTS, payload=Impossible())
    seal(buffer, 3, lane=EVENTS)

    batches = buffer.pull(received=0)

    assert numbers(batches) == [1, 3]
    [(reason_and_kind, (count, _, _))] = losses(batches).items()
    assert reason_and_kind == (ODD, "event")
    assert count == 1


@pytest.mark.parametrize("seed", range(8))
def test_every_row_arrives_once_or_is_counted_as_lost(seed):
    """A slow puller, lost answers, a little room: the limit holds all the while."""
    draw = random.Random(seed)
    limit = draw.choice([2_000, 10_000, 50_000])
    buffer, arrived, appended = Buffer(limit), [], Counter()

    def pull(everything=False):
        received = arrived[-1].number if arrived else 0
        answer = buffer.pull(received, everything=everything)
        told = sum(len(batch.content) for batch in answer if losses([batch]))
        assert sum(len(batch.content) for batch in answer) - told <= limit
        return answer

    for number in range(3_000):
        lane = draw.choice([SAMPLES, EVENTS, EVENTS, FACTS])
        buffer.append(row(number, lane, draw.randbytes(draw.randrange(50)).hex()), lane)
        appended[KINDS[lane]] += 1
        if draw.random() < 0.05:
            buffer.seal()
        if draw.random() < 0.005:
            answer = pull(everything=draw.random() < 0.3)
            if draw.random() < 0.7:
                arrived += answer
    while answer := pull():
        arrived += answer

    assert len(set(numbers(arrived))) == len(numbers(arrived))
    found, lost = Counter(), Counter()
    for _, _, kind, fields in rows_of(arrived):
        if kind == "loss":
            lost[fields["record_kind"]] += fields["records"]
        else:
            found[kind] += 1
    assert found + lost == appended
    assert lost
    assert buffer.empty
