-- Needs: _clip_negative
-- Both ends report a transfer. Two reports match if workers and keys are the same and the times
-- overlap within 1 s, for clock differences. If the same keys were transferred several times
-- between the same workers, reports match if each is the nearest to the other.
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

COMMENT ON VIEW transfers IS 'Transfers of results between workers, and with clients. One row per transfer. Both ends report a transfer between workers; values are the receiver''s if it reported, otherwise the sender''s. Data exchanged by P2P shuffles is not included, since Dask does not log it. Empty unless recorded with transfers=True.';
COMMENT ON COLUMN transfers.start_t IS 'Start (request by the receiver), in seconds since the epoch. Null for data scattered by a client, which is not timed.';
COMMENT ON COLUMN transfers.stop_t IS 'End (arrival of all data), in seconds since the epoch.';
COMMENT ON COLUMN transfers.source IS 'Address of the sending worker. Null for a client, or the scheduler on its behalf.';
COMMENT ON COLUMN transfers.destination IS 'Address of the receiving worker. Null for a client, or the scheduler on its behalf.';
COMMENT ON COLUMN transfers.bytes IS 'Size of the data, measured by Dask''s sizeof.';
COMMENT ON COLUMN transfers.keys IS 'Size of the data by key.';
COMMENT ON COLUMN transfers.seconds IS 'Duration.';
COMMENT ON COLUMN transfers.bytes_per_second IS 'Bandwidth.';
COMMENT ON COLUMN transfers.sent_bytes IS 'Bytes written to the network by the sender, after compression. Null if not reported.';
COMMENT ON COLUMN transfers.reported_by IS 'Reporting end: both, destination or source. After a worker died, only the surviving end''s report is available. rebalance(), replicate() and transfers to a client are reported by the source alone, scattered data by the destination. Null if not recorded.';
COMMENT ON COLUMN transfers.sizes_agree IS 'True if both ends report the same size for each key. Null unless both reported.';
COMMENT ON COLUMN transfers.source_start_t IS 'Start of sending, in seconds since the epoch. Null if not reported.';
COMMENT ON COLUMN transfers.source_stop_t IS 'End of sending, in seconds since the epoch. Null if not reported.';
COMMENT ON COLUMN transfers.source_bytes IS 'Size of the data as reported by the sender. Null if not reported.';
COMMENT ON COLUMN transfers.trace_id IS 'ID of the trace.';
