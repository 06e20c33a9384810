"""The buffer: nothing lost on the way, nothing kept without bound."""

from roast_recorder import rows
from roast_recorder.buffer import BATCHES_PER_PULL, ROWS_PER_BATCH, Buffer
from roast_recorder.rows import RECORD


def row(number):
    return (RECORD, float(number), "event", {"topic": "t"})


def numbers(batches):
    return [int(item[1]) for _, batch in batches for item in rows.decode(batch)]


def test_rows_come_out_in_order():
    buffer = Buffer(limit_bytes=10**6)
    for number in range(3):
        buffer.append(row(number))

    assert numbers(buffer.pull(received=0)) == [0, 1, 2]


def test_a_batch_stays_until_it_is_acknowledged():
    buffer = Buffer(limit_bytes=10**6)
    buffer.append(row(1))
    [(first, _)] = buffer.pull(received=0)
    buffer.append(row(2))

    assert numbers(buffer.pull(received=0)) == [1, 2], "the first answer may have been lost"
    assert numbers(buffer.pull(received=first)) == [2]
    assert not buffer.empty
    assert buffer.pull(received=first + 1) == []
    assert buffer.empty


def pull_all(buffer):
    pulled, received = [], 0
    while batches := buffer.pull(received):
        pulled += batches
        received = batches[-1][0]
    return pulled


def test_a_pull_takes_so_many_rows_and_the_next_the_rest():
    buffer = Buffer(limit_bytes=10**8)
    total = (BATCHES_PER_PULL + 1) * ROWS_PER_BATCH + 1
    for number in range(total):
        buffer.append(row(number))

    assert len(buffer.pull(received=0)) == BATCHES_PER_PULL
    assert buffer.crowded
    assert numbers(pull_all(buffer)) == list(range(total))
    assert buffer.empty


def test_who_pulls_loses_nothing_of_a_burst_beyond_the_limit():
    buffer = Buffer(limit_bytes=1_000)
    for number in range(10_000):
        buffer.append(row(number))

    buffer.trim()

    assert numbers(pull_all(buffer)) == list(range(10_000))
    assert buffer.dropped == {}


def test_while_nobody_pulls_what_goes_beyond_the_limit_is_dropped_and_counted(monkeypatch):
    buffer = Buffer(limit_bytes=100)
    buffer.append(row(1))
    monkeypatch.setattr("roast_recorder.buffer.STALLED_SECONDS", 0.0)
    buffer.trim()
    for number in range(2, 9):
        buffer.append(row(number))
        buffer.trim()

    pulled = numbers(pull_all(buffer))
    assert pulled == list(range(1, len(pulled) + 1))
    assert len(pulled) < 8
    assert buffer.dropped == {"event": 8 - len(pulled)}


def test_there_is_room_again_after_a_pull(monkeypatch):
    monkeypatch.setattr("roast_recorder.buffer.STALLED_SECONDS", 0.0)
    buffer = Buffer(limit_bytes=100)
    for number in range(1, 9):
        buffer.append(row(number))
        buffer.trim()
    pull_all(buffer)
    buffer.append(row(9))
    buffer.trim()

    assert numbers(pull_all(buffer)) == [9]
