-- Needs: nothing
-- Error that coffea wraps as Exception("Failed processing file: WorkItem(…). The error was:
-- OSError('…')."), or with "Failed to open file" or "Failed creating nanoevents". The outer repr escapes the backslashes of
-- the quoted error, and its quotation marks if it contains both kinds.
CREATE MACRO _error_cause(exception) AS CASE
    WHEN regexp_matches(exception, 'Failed [a-z ]+: WorkItem\(')
        THEN coalesce(
            regexp_replace(
                nullif(regexp_extract(exception, 'The error was: (.+?)\.?["'']?\)?$', 1, 's'), ''),
                '\\(\\|'')',
                '\1',
                'g'
            ),
            exception
        )
    ELSE exception
END;
