-- Tasks that no worker may run.
-- Dask holds a task in the state no-worker if no worker has the resources that it needs, or is one of
-- those that it is restricted to. Only waits of at least one second count. The saving is at most the
-- time of the longest wait after which a task ran. A task that had run before, and did not run again, only
-- delayed the run if threads were idle meanwhile. If the tasks were never attempted, the result is
-- incomplete: there is no saving.
-- Records: transition
-- Explains: tail, dependencies
-- Source: states of tasks on the scheduler of distributed
-- Documentation: https://distributed.dask.org/en/stable/resources.html
SELECT
    prefix AS entity,
    'high' AS confidence,
    concat(
        format(
            '{:,} {} {} waited up to {:.1f} s for a worker that may run {}', tasks,
            CASE tasks WHEN 1 THEN 'task' ELSE 'tasks' END,
            CASE prefixes WHEN 1 THEN 'of ' || prefix ELSE format('(such as {})', prefix) END,
            longest_seconds,
            CASE tasks WHEN 1 THEN 'it' ELSE 'them' END
        ),
        format(', with the resources {}', resources),
        format(', on {}', workers),
        '.',
        CASE
            WHEN unattempted_tasks = 0 THEN ''
            WHEN tasks = 1 THEN ' It never ran.'
            WHEN unattempted_tasks = tasks THEN ' They never ran.'
            ELSE format(' {:,} of them never ran.', unattempted_tasks)
        END,
        CASE
            WHEN unrepeated_tasks = 0 THEN ''
            WHEN tasks = 1 THEN ' It had run before, but did not run again.'
            WHEN unrepeated_tasks = tasks THEN ' They had run before, but did not run again.'
            ELSE format(' {:,} of them had run before, but did not run again.', unrepeated_tasks)
        END
    ) AS sentence,
    idle_seconds AS core_seconds,
    CASE WHEN unattempted_tasks = 0 THEN 0.0 END AS wall_seconds_min,
    -- greatest() ignores null.
    CASE
        WHEN unattempted_tasks = 0
            THEN greatest(delay_seconds, CASE WHEN unrepeated_tasks > 0 THEN partly_idle_seconds END)
    END AS wall_seconds_max,
    CASE
        WHEN resources IS NOT NULL
            THEN format('Start workers with these resources (dask worker --resources), or remove resources={} from the tasks.', resources)
        WHEN are_mixed
            THEN 'Correct workers= and resources= of these tasks, or start workers that may run them.'
        ELSE 'Correct workers= of these tasks, or allow other workers as well: allow_other_workers=True.'
    END AS change,
    'SELECT key, prefix, workers, resources FROM restrictions' AS evidence,
    trace_id
FROM _unplaceable_tasks;
