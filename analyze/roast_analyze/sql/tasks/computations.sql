-- Needs: _submit_code
-- Graphs that arrive while the scheduler has work belong to the current computation.
CREATE VIEW computations AS
WITH begun AS (
    SELECT
        record.trace_id,
        record.name AS computation,
        min(record.rowid) AS seq,
        -- Older traces have a later time than that of the tasks.
        least(min(record.t), min(graph.entered_t)) AS t,
        min_by(record.client, record.rowid) AS client,
        min_by(record.stimulus_id, record.rowid) AS stimulus_id
    FROM raw.computation AS record
    LEFT JOIN (
        SELECT trace_id, stimulus_id, min(t) AS entered_t FROM raw.task GROUP BY ALL
    ) AS graph USING (trace_id, stimulus_id)
    GROUP BY record.trace_id, record.name
),
entered AS (
    SELECT
        begun.trace_id,
        begun.computation,
        count(*) AS tasks,
        count(DISTINCT task.stimulus_id) AS graphs
    FROM raw.task AS task
    ASOF INNER JOIN begun ON task.trace_id = begun.trace_id AND task.t >= begun.t
    WHERE task.stimulus_id IS NOT NULL
    GROUP BY ALL
),
codes AS (
    SELECT
        trace_id,
        computation,
        min_by(filename, t) AS filename,
        min_by(line_number, t) AS line_number,
        min_by(line, t) AS line,
        string_agg(DISTINCT text, chr(10) || chr(10)) AS code
    FROM (
        SELECT
            code.* EXCLUDE (computation),
            coalesce(code.computation, begun.computation) AS computation,
            trim(string_split(code.text, chr(10))[code.line_number - code.first_line + 1]) AS line
        FROM _submit_code AS code
        -- Code recorded by a client belongs to the computation that contains its graph.
        ASOF INNER JOIN begun
            ON code.trace_id = begun.trace_id AND code.entered_t >= begun.t
    )
    GROUP BY trace_id, computation
)
SELECT
    computation,
    t,
    client,
    stimulus_id,
    coalesce(entered.graphs, 0) AS graphs,
    coalesce(entered.tasks, 0) AS tasks,
    codes.filename,
    codes.line_number,
    codes.line,
    codes.code,
    trace_id
FROM begun
LEFT JOIN entered USING (trace_id, computation)
LEFT JOIN codes USING (trace_id, computation)
ORDER BY trace_id, seq;

COMMENT ON VIEW computations IS 'Dask computations, with the code that submitted them. One row per computation, a period in which the scheduler has work. Graphs submitted during the period belong to it.';
COMMENT ON COLUMN computations.computation IS 'ID of the computation.';
COMMENT ON COLUMN computations.t IS 'Submission of the first graph, in seconds since the epoch.';
COMMENT ON COLUMN computations.client IS 'Client that submitted the first graph.';
COMMENT ON COLUMN computations.stimulus_id IS 'First graph, as in graph_updates.';
COMMENT ON COLUMN computations.graphs IS 'Graphs that added new tasks.';
COMMENT ON COLUMN computations.tasks IS 'New tasks.';
COMMENT ON COLUMN computations.filename IS 'Source file of the first submitting code. Null unless code is recorded (opt-in).';
COMMENT ON COLUMN computations.line_number IS 'Line number in filename.';
COMMENT ON COLUMN computations.line IS 'Text of this line.';
COMMENT ON COLUMN computations.code IS 'Submitting code (functions or notebook cells), without repetitions.';
COMMENT ON COLUMN computations.trace_id IS 'ID of the trace.';
