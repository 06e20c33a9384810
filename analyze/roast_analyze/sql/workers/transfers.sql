-- Needs: _clip_negative
-- Both ends tell of a transfer. Two words are of one if they have the same workers and keys,
-- and times that overlap, but for what clocks may differ by: 1 s. Where the same keys went the
-- same way more than once, they are of one if each is the nearest to the other.
CREATE VIEW transfers AS
WITH words AS (
    SELECT
        rowid AS seq,
        trace_id,
        source,
        destination,
        start_t,
        stop_t,
        nbytes,
        keys,
        list_sort(map_keys(keys)) AS names,
        measured.sent_bytes AS sent_bytes,
        CASE worker WHEN destination THEN 'destination' WHEN source THEN 'source' END AS reported_by
    FROM raw.transfer
),
pairs AS (
    SELECT
        received.seq AS received,
        sent.seq AS sent,
        abs(sent.start_t + sent.stop_t - received.start_t - received.stop_t) AS apart
    FROM words AS received
    INNER JOIN words AS sent USING (trace_id, source, destination, names)
    WHERE received.reported_by = 'destination'
        AND sent.reported_by = 'source'
        AND received.start_t - 1 <= sent.stop_t
        AND sent.start_t - 1 <= received.stop_t
    QUALIFY row_number() OVER (PARTITION BY received.seq ORDER BY apart, sent.seq) = 1
        AND row_number() OVER (PARTITION BY sent.seq ORDER BY apart, received.seq) = 1
)
SELECT
    word.start_t,
    word.stop_t,
    word.source,
    word.destination,
    word.nbytes AS bytes,
    word.keys,
    _clip_negative(word.stop_t - word.start_t) AS seconds,
    CASE
        WHEN word.stop_t > word.start_t THEN word.nbytes / (word.stop_t - word.start_t)
    END AS bytes_per_second,
    coalesce(sender.sent_bytes, word.sent_bytes) AS sent_bytes,
    CASE WHEN sender.seq IS NULL THEN word.reported_by ELSE 'both' END AS reported_by,
    CASE
        WHEN sender.seq IS NOT NULL THEN word.nbytes IS NOT DISTINCT FROM sender.nbytes
            AND list_sort(map_entries(word.keys)) = list_sort(map_entries(sender.keys))
    END AS sizes_agree,
    CASE word.reported_by WHEN 'source' THEN word.start_t ELSE sender.start_t END AS source_start_t,
    CASE word.reported_by WHEN 'source' THEN word.stop_t ELSE sender.stop_t END AS source_stop_t,
    CASE word.reported_by WHEN 'source' THEN word.nbytes ELSE sender.nbytes END AS source_bytes,
    word.trace_id
FROM words AS word
LEFT JOIN pairs AS pair ON word.seq = pair.received
LEFT JOIN words AS sender ON pair.sent = sender.seq
WHERE NOT EXISTS (SELECT 1 FROM pairs AS other WHERE other.sent = word.seq)
ORDER BY word.trace_id, word.seq;

COMMENT ON VIEW transfers IS 'Results that moved from one worker to another, or between a worker and a client: one row per transfer. Empty unless the recorder was asked for it (transfers=True). Both ends tell of a transfer between workers: what is said here is what the receiver says, else the sender. Data that P2P shuffles exchange are no results, and in no log of Dask''s: they are not among these.';
COMMENT ON COLUMN transfers.start_t IS 'When it began, in seconds since the epoch: when the receiver asked for it. Null of what a client scattered, since nobody timed it.';
COMMENT ON COLUMN transfers.stop_t IS 'When it ended, in seconds since the epoch: when all had arrived.';
COMMENT ON COLUMN transfers.source IS 'Address of the worker that sent; null: a client, or the scheduler for one.';
COMMENT ON COLUMN transfers.destination IS 'Address of the worker that received; null: a client, or the scheduler for one.';
COMMENT ON COLUMN transfers.bytes IS 'Size of what was moved, as sizeof of Dask measures it.';
COMMENT ON COLUMN transfers.keys IS 'Size of what was moved, by key.';
COMMENT ON COLUMN transfers.seconds IS 'How long it took.';
COMMENT ON COLUMN transfers.bytes_per_second IS 'Bandwidth: bytes in one second.';
COMMENT ON COLUMN transfers.sent_bytes IS 'Bytes that the sender wrote to the network, compressed as they were; null if it did not tell.';
COMMENT ON COLUMN transfers.reported_by IS 'Who told of it: both, destination or source. A worker that dies tells no more, and the word of the other end stays; Dask''s rebalance() and replicate() are told of by the source alone, what a client takes by the source, and what it scatters by the destination. Null if the trace does not say.';
COMMENT ON COLUMN transfers.sizes_agree IS 'Whether both ends tell of the same size of each key; null unless both told.';
COMMENT ON COLUMN transfers.source_start_t IS 'When the sender began to write, in seconds since the epoch; null if it did not tell.';
COMMENT ON COLUMN transfers.source_stop_t IS 'When the sender was done, in seconds since the epoch; null if it did not tell.';
COMMENT ON COLUMN transfers.source_bytes IS 'Size of what was moved, as the sender says; null if it did not tell.';
COMMENT ON COLUMN transfers.trace_id IS 'Identity of the recording.';
