-- Needs: _damaged_profiles, _process_addresses, _workers
-- Profiling cycles of a worker with samples of a method of an actor. Methods of actors are not recorded as tasks, but
-- profiled, with the prefix of the actor's task and the name of the method in place of a prefix. A worker computes
-- them one at a time, in a thread beside those of its tasks, so that a cycle has no more time of them than it is long.
-- Only the number of samples in a cycle is known, so that their times follow each other from its start (from_t to
-- until_t). _taskless_work has whole cycles, also of prefixes that no record shows to be an actor's.
CREATE VIEW _actor_calls AS
SELECT
    * EXCLUDE (before_seconds, sampled_seconds),
    least(start_t + before_seconds, stop_t) AS from_t,
    least(start_t + before_seconds + sampled_seconds, stop_t) AS until_t
FROM (
    SELECT
        *,
        coalesce(
            sum(sampled_seconds) OVER (
                PARTITION BY trace_id, process, start_t
                ORDER BY method
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            0
        ) AS before_seconds
    FROM (
        SELECT
            cycle.trace_id,
            cycle.worker,
            coalesce(known.process, address.process) AS process,
            cycle.prefix AS method,
            slice.start_t,
            slice.stop_t,
            -- The first node is the root of all stacks.
            cycle.interval_seconds * slice.counts[list_position(slice.nodes, 0)] AS sampled_seconds
        FROM (
            SELECT trace_id, worker, server_id, prefix, interval_seconds, unnest(tree.slices) AS slice
            FROM raw.profile AS profile
            SEMI JOIN raw.task AS actor
                ON profile.trace_id = actor.trace_id
                AND regexp_extract(profile.prefix, '^(.+)[.][^.]+$', 1) = actor.prefix
            ANTI JOIN raw.task AS task
                ON profile.trace_id = task.trace_id AND profile.prefix = task.prefix
            WHERE profile.worker IS NOT NULL
                AND profile.rowid NOT IN (SELECT record FROM _damaged_profiles)
        ) AS cycle
        LEFT JOIN _workers AS known
            ON cycle.trace_id = known.trace_id AND cycle.server_id = known.server_id
        LEFT JOIN _process_addresses AS address
            ON cycle.trace_id = address.trace_id
            AND cycle.worker = address.worker
            AND slice.start_t >= address.from_t
            AND slice.start_t < address.until_t
    )
    WHERE start_t < stop_t AND isfinite(start_t) AND isfinite(stop_t) AND sampled_seconds > 0
);
