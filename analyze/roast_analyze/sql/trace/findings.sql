-- Needs: _findings
CREATE VIEW findings AS
FROM _findings
ORDER BY trace_id, rank;

COMMENT ON VIEW findings IS 'What made the run slow or wasteful, and what to change. One row per finding; the largest saving first. Findings that could save less than 1 % of the run are left out. A healthy run has none.';
COMMENT ON COLUMN findings.rank IS 'Place in the trace, from 1.';
COMMENT ON COLUMN findings.id IS 'Rule that made the finding: the file of this name in sql/rules.';
COMMENT ON COLUMN findings.title IS 'Kind of the finding.';
COMMENT ON COLUMN findings.severity IS 'major: could save at least 10 % of the run, or the result is incomplete · moderate: 5 % · minor: 1 % · note: a remark without a saving.';
COMMENT ON COLUMN findings.confidence IS 'high: measured · medium: estimated · low: one of several possible explanations.';
COMMENT ON COLUMN findings.entity IS 'What the finding is about: a worker, host, file, dataset, prefix, exception or branch. Null if it is the whole run.';
COMMENT ON COLUMN findings.sentence IS 'The finding with its numbers.';
COMMENT ON COLUMN findings.core_seconds IS 'Thread time that it cost, at most that of the run.';
COMMENT ON COLUMN findings.core_share IS 'core_seconds / run.core_seconds. Null if core_seconds contains time of threads that were missing, or is null.';
COMMENT ON COLUMN findings.wall_seconds_min IS 'Lower end of the estimated saving of wall time without it. Null if nothing can be saved, or if it is not known how much.';
COMMENT ON COLUMN findings.wall_seconds_max IS 'Upper end, at most four times the lower one. Null if only a lower bound is known.';
COMMENT ON COLUMN findings.wall_share IS 'Mean of both ends / run.wall_seconds, before the upper end is raised by half; of a lower bound, the bound / run.wall_seconds.';
COMMENT ON COLUMN findings.change IS 'Recommended change.';
COMMENT ON COLUMN findings.evidence IS 'Query that returns the data behind it.';
COMMENT ON COLUMN findings.documentation IS 'Page about the subject.';
COMMENT ON COLUMN findings.trace_id IS 'ID of the trace.';
