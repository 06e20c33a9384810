-- Needs: nothing
-- Records: profile
-- Profiling cycles in which a worker computed something that is no task: methods of actors are not
-- recorded as tasks, but profiled, with the name of the method in place of a prefix.
CREATE VIEW _taskless_work AS
SELECT trace_id, slice.start_t, slice.stop_t
FROM (
    SELECT profile.trace_id, unnest(tree.slices) AS slice
    FROM raw.profile AS profile
    ANTI JOIN raw.task AS task
        ON profile.trace_id = task.trace_id AND profile.prefix = task.prefix
    WHERE profile.prefix IS NOT NULL
        AND profile.worker IS NOT NULL
        -- Without any record of a task, all prefixes lack one.
        AND profile.trace_id IN (SELECT trace_id FROM raw.task)
);
