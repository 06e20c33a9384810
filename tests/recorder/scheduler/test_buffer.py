"""The buffer: every record arrives once or is counted as lost, and memory is bounded."""

import itertools
import random
from collections import Counter

import pytest

from roast_recorder.scheduler import buffer as buffer_module
from roast_recorder.scheduler import wire_format
from roast_recorder.scheduler.buffer import (
    BATCHES_PER_PULL,
    EVENTS,
    TOO_MUCH,
    UNENCODABLE,
    UNSEALED_SHARE,
    Buffer,
)

PLENTY = 10**8

#: One kind for each lane, all names of the same length.
PROFILE, EVENT, GRAPH = "profile", "event__", "graph__"


@pytest.fixture(autouse=True)
def lanes(monkeypatch):
    monkeypatch.setitem(buffer_module.LANES, EVENT, EVENTS)


@pytest.fixture
def per_batch(monkeypatch):
    monkeypatch.setattr(buffer_module, "RECORDS_PER_BATCH", 100)
    return 100


@pytest.fixture
def incompressible(monkeypatch):
    """Disable compression, so that batches keep their sizes."""
    monkeypatch.setattr(wire_format, "compress", bytes)


def row(number, kind=GRAPH, payload=""):
    return (kind, float(number), 1, {"payload": payload})


def transition(number):
    return [float(number), "k", "released", "waiting", "s"]


def seal(buffer, *numbers, kind=GRAPH, payload=""):
    """Encode one batch of these rows."""
    for number in numbers:
        buffer.append(row(number, kind, payload))
    buffer.seal()


def rows_of(batches):
    return [item for _, content in batches for item in wire_format.decode(content)[1]]


def numbers(batches):
    return [int(t) for kind, t, *_ in rows_of(batches) if kind != "loss"]


def losses(batches):
    """Return the records, first and last time of losses by reason and kind."""
    names = ("records", "start_t", "stop_t")
    return {
        (loss["reason"], loss["record_kind"]): tuple(map(loss.get, names))
        for kind, _, _, loss in rows_of(batches)
        if kind == "loss"
    }


def nbytes_of(*rows):
    return len(wire_format.encode([], rows, None))


def are_compressed(batches):
    return [content[:4] == b"\x28\xb5\x2f\xfd" for _, content in batches]


# -- pulling --------------------------------------------------------------------------------


def test_each_lane_has_its_own_batch_and_facts_come_first():
    buffer = Buffer(PLENTY)
    hooked = buffer.transitions
    hooked.extend(transition(1))
    for number, kind in enumerate([PROFILE, EVENT, GRAPH, GRAPH], 2):
        buffer.append(row(number, kind))

    batches = buffer.pull(received=0)

    assert [numbers([batch]) for batch in batches] == [[4, 5], [3], [2]]
    assert wire_format.decode(batches[0][1])[0] == transition(1)
    hooked.extend(transition(6))
    [(_, content)] = buffer.pull(batches[-1][0])
    assert wire_format.decode(content) == (transition(6), [])


def test_a_batch_stays_until_it_is_acknowledged():
    buffer = Buffer(PLENTY)
    buffer.append(row(1))
    [first] = buffer.pull(received=0)
    buffer.append(row(2))

    again, second = buffer.pull(received=0)
    assert again == first
    assert buffer.pull(received=first[0]) == [second]
    assert not buffer.empty
    assert buffer.pull(received=second[0]) == []
    assert buffer.empty


def test_any_pending_data_makes_a_buffer_nonempty():
    for wait in (
        lambda buffer: buffer.append(row(1)),
        lambda buffer: buffer.append(row(1, PROFILE)),
        lambda buffer: buffer.transitions.extend(transition(1)),
        lambda buffer: seal(buffer, 1),
    ):
        for limit in (PLENTY, 1):  # the latter leaves a loss pending
            buffer = Buffer(limit)
            seal(buffer)
            assert buffer.empty
            wait(buffer)
            assert not buffer.empty


@pytest.mark.parametrize("everything", [False, True])
def test_rows_are_encoded_and_pulled_in_portions(per_batch, everything):
    buffer = Buffer(PLENTY)
    total = (BATCHES_PER_PULL + 2) * per_batch + 1
    for number in range(total):
        buffer.append(row(number))

    first = buffer.pull(received=0)

    assert [len(rows_of([batch])) for batch in first] == [per_batch] * BATCHES_PER_PULL
    assert buffer.pull(received=0) == first
    assert buffer.crowded
    written = first[:5] if everything else first
    rest = buffer.pull(written[-1][0], everything=everything)
    assert numbers(written + rest) == list(range(total))
    assert not buffer.crowded
    assert buffer.pull(rest[-1][0]) == []
    assert buffer.empty


def test_a_buffer_with_two_unpulled_batches_is_crowded(per_batch):
    buffer, crowded = Buffer(PLENTY), []
    for t in (1.0, 2.0):  # rows of many records are encoded sooner
        buffer.append(("worker_sample", t, per_batch - 1, []))
        buffer.append(("profile", t, 1, ("w", "id", b"")))
        crowded.append(buffer.crowded)
    buffer.pull(received=0)

    assert (crowded, buffer.crowded) == ([False, True], False)


# -- the limit ------------------------------------------------------------------------------


def test_a_batch_that_just_fits_is_kept():
    for spare, kept in [(0, [1]), (-1, [])]:
        buffer = Buffer(nbytes_of(row(1)) + spare)
        seal(buffer, 1)
        assert numbers(buffer.pull(received=0)) == kept


@pytest.mark.usefixtures("incompressible")
def test_the_least_valuable_batch_is_dropped_first_and_of_those_the_oldest():
    for kinds, dropped in [
        ([PROFILE, EVENT, GRAPH, GRAPH], 0),
        ([EVENT, PROFILE, GRAPH, GRAPH], 1),
        ([GRAPH, EVENT, PROFILE, EVENT], 2),
        ([GRAPH, EVENT, GRAPH, GRAPH], 1),
        ([GRAPH, EVENT, PROFILE, PROFILE], 3),
        ([GRAPH, EVENT, GRAPH, EVENT], 3),
        ([GRAPH, GRAPH, GRAPH, GRAPH], 3),
        ([PROFILE, PROFILE, EVENT, GRAPH], 0),
    ]:
        buffer = Buffer(3 * nbytes_of(row(1)))
        for number, kind in enumerate(kinds):
            seal(buffer, number, kind=kind)
        batches = buffer.pull(received=0)
        assert numbers(batches) == [number for number in range(4) if number != dropped]
        assert losses(batches) == {(TOO_MUCH, kinds[dropped]): (1, dropped, dropped)}


@pytest.mark.usefixtures("incompressible")
def test_no_more_is_dropped_than_necessary():
    small = nbytes_of(row(0, PROFILE))
    buffer = Buffer(10 * small)
    for number in range(10):
        seal(buffer, number, kind=PROFILE)

    # It needs the room of one batch and a part of the next.
    seal(buffer, 10, payload="x" * (small // 2))
    # Dropping all the others would not make room for this one.
    seal(buffer, 11, payload="x" * 100 * small)
    # The rest of that part is free again.
    seal(buffer, 12)

    batches = buffer.pull(0, everything=True)
    assert numbers(batches) == [*range(3, 10), 10, 12]
    assert losses(batches) == {(TOO_MUCH, PROFILE): (3, 0, 2), (TOO_MUCH, GRAPH): (1, 11, 11)}


@pytest.mark.usefixtures("incompressible")
def test_a_batch_that_was_pulled_is_never_dropped_and_makes_room_when_acknowledged():
    buffer = Buffer(2 * nbytes_of(row(1, PROFILE)))
    seal(buffer, 1, kind=PROFILE)
    [pulled] = buffer.pull(received=0)
    seal(buffer, 2, kind=PROFILE)
    seal(buffer, 3)
    seal(buffer, 4)

    batches = buffer.pull(received=0)

    assert batches[0] == pulled
    assert numbers(batches) == [1, 3]
    assert losses(batches) == {(TOO_MUCH, PROFILE): (1, 2, 2), (TOO_MUCH, GRAPH): (1, 4, 4)}
    assert buffer.pull(received=batches[-1][0]) == []
    seal(buffer, 5)
    assert numbers(buffer.pull(received=batches[-1][0])) == [5]


def test_batches_are_compressed_when_the_buffer_fills_or_they_would_not_fit():
    payload = "much the same " * 100
    # A sixteenth is just less than two batches.
    limit = 2 * 16 * nbytes_of(row(0, payload=payload)) - 16
    waiting, pulled, received = Buffer(limit), Buffer(limit), 0
    for number in range(40):
        seal(pulled, number, payload=payload)
        [(received, content)] = pulled.pull(received)
        assert are_compressed([(received, content)]) == [False]
    for number in range(5):
        seal(waiting, number, payload=payload)
    tight = Buffer(2_000)
    seal(tight, 1, payload="x" * 10_000)

    batches = waiting.pull(received=0)

    assert are_compressed(batches) == [False, False, True, True, True]
    assert numbers(batches) == [0, 1, 2, 3, 4]
    [batch] = tight.pull(received=0)
    assert (are_compressed([batch]), numbers([batch])) == ([True], [1])


# -- losses ---------------------------------------------------------------------------------


def test_losses_are_counted_by_kind_from_the_first_to_the_last():
    buffer = Buffer(limit_bytes=1)
    for number in (5, 3, 9):
        buffer.transitions.extend(transition(number))
    buffer.append(row(7))
    buffer.append(("fine_metric", 8.0, 2, ("w", "id", {})))
    seal(buffer, 2, kind=PROFILE)
    buffer.append(row(4))
    seal(buffer, 6, kind=EVENT)

    assert losses(buffer.pull(received=0)) == {
        (TOO_MUCH, "transition"): (3, 3.0, 9.0),
        (TOO_MUCH, GRAPH): (2, 4.0, 7.0),
        (TOO_MUCH, "fine_metric"): (2, 8.0, 8.0),
        (TOO_MUCH, PROFILE): (1, 2.0, 2.0),
        (TOO_MUCH, EVENT): (1, 6.0, 6.0),
    }


@pytest.mark.parametrize("everything", [False, True])
def test_a_loss_is_reported_once(everything):
    buffer = Buffer(limit_bytes=1)
    seal(buffer, 1)
    [reported] = buffer.pull(received=0)
    assert losses([reported]) == {(TOO_MUCH, GRAPH): (1, 1.0, 1.0)}
    buffer.append(row(2))

    again, more = buffer.pull(received=0, everything=everything)

    assert again == reported, "the unacknowledged loss was not sent again"
    assert losses([more]) == {(TOO_MUCH, GRAPH): (1, 2.0, 2.0)}
    assert buffer.pull(received=more[0]) == []
    assert buffer.empty


@pytest.mark.usefixtures("incompressible")
def test_a_loss_follows_the_pending_batches():
    last = BATCHES_PER_PULL + 1
    buffer = Buffer(last * nbytes_of(row(1)))
    for number in range(last + 1):
        seal(buffer, number)

    first = buffer.pull(received=0)
    second = buffer.pull(received=first[-1][0])

    assert numbers(first + second) == list(range(last))
    assert losses(first) == {}
    assert losses(second) == {(TOO_MUCH, GRAPH): (1, last, last)}


def test_a_record_that_cannot_be_encoded_is_a_loss():
    class NoClass:
        @property
        def __class__(self):
            raise RuntimeError("not even its class")

    buffer = Buffer(PLENTY)
    seal(buffer, 1)
    buffer.append(("fine_metric", 2.0, 1, NoClass()))

    batches = buffer.pull(received=0)

    assert numbers(batches) == [1]
    assert losses(batches) == {(UNENCODABLE, "fine_metric"): (1, 2.0, 2.0)}


@pytest.mark.parametrize("seed", range(4))
def test_every_record_arrives_once_or_is_counted_as_lost(seed):
    """With a slow puller, lost answers and little room, the limit is never exceeded."""
    draw = random.Random(seed)
    limit = draw.choice([2_000, 10_000, 50_000])
    buffer, arrived, appended = Buffer(limit), [], Counter()

    def pull(everything=False):
        batches = buffer.pull(arrived[-1][0] if arrived else 0, everything=everything)
        of_records = [content for number, content in batches if not losses([(number, content)])]
        assert sum(map(len, of_records)) <= limit
        return batches

    for number in range(3_000):
        kind = draw.choice([PROFILE, EVENT, EVENT, GRAPH])
        buffer.append(row(number, kind, draw.randbytes(draw.randrange(50)).hex()))
        appended[kind] += 1
        if draw.random() < 0.05:
            buffer.seal()
        if draw.random() < 0.005:
            batches = pull(everything=draw.random() < 0.3)
            if draw.random() < 0.7:
                arrived += batches
    while batches := pull():
        arrived += batches

    assert len(set(numbers(arrived))) == len(numbers(arrived))
    found, lost = Counter(), Counter()
    for kind, _, _, content in rows_of(arrived):
        if kind == "loss":
            lost[content["record_kind"]] += content["records"]
        else:
            found[kind] += 1
    assert found + lost == appended
    assert lost
    assert buffer.empty


# -- large and deferred rows ----------------------------------------------------------------


@pytest.mark.usefixtures("incompressible")
def test_large_rows_are_encoded_before_they_exceed_their_share_of_the_limit():
    for payload in (
        "x" * 40_000,
        b"x" * 40_000,
        ["x" * 40] * 1_000,
        {"a": [list("x" * 40)] * 30},
    ):
        buffer = Buffer(10**6)
        for number in range(20):
            buffer.append(row(number, payload=payload))
        sizes = [len(content) for _, content in buffer.pull(received=0, everything=True)]
        assert max(sizes) < 10**6 * UNSEALED_SHARE + 60_000
        assert len(sizes) > 1


def test_deferred_rows_arrive_in_portions(monkeypatch):
    monkeypatch.setattr(buffer_module, "ROWS_BYTES_PER_BATCH", 1_000)
    buffer, made = Buffer(PLENTY), []

    def rows():
        for number in range(60):
            made.append(number)
            yield row(number, payload="x" * 80)
        yield None
        yield row(60)

    buffer.defer(rows(), 6_000)
    buffer.append(row(61))
    assert made == []
    assert not buffer.empty
    assert buffer.crowded
    received, batches, portions = 0, [], []
    while pulled := buffer.pull(received):
        received, _ = pulled[-1]
        batches += pulled
        portions.append(len(made))
    assert sorted(numbers(batches)) == list(range(62))
    assert max(b - a for a, b in itertools.pairwise(portions)) < 20
    assert buffer.empty
    assert not buffer.crowded


def test_the_last_pull_returns_all_deferred_rows():
    buffer = Buffer(PLENTY)
    for first in (0, 10_000):
        buffer.defer(map(row, range(first, first + 10_000)), 10**6)
    batches = buffer.pull(0, everything=True)
    assert sorted(numbers(batches)) == list(range(20_000))
    assert buffer.pull(batches[-1][0]) == []
    assert buffer.empty


@pytest.mark.usefixtures("incompressible")
def test_deferred_rows_count_for_the_limit():
    limit = 200_000
    payload = "x" * 100

    def rows(first):
        return (row(first + number, payload=payload) for number in range(1_000))

    buffer = Buffer(limit)
    for first in range(0, 6_000, 1_000):
        buffer.defer(rows(first), 150_000)
        assert buffer._deferred_bytes <= limit / 2
        assert buffer._waiting_bytes + buffer._deferred_bytes <= limit
    received, kept, lost = 0, 0, 0
    while pulled := buffer.pull(received):
        received = pulled[-1][0]
        kept += len(numbers(pulled))
        lost += sum(records for records, *_ in losses(pulled).values())
    assert kept + lost == 6_000
    assert kept
    assert lost
