-- Needs: nothing
-- Error that coffea wraps as Exception("Failed processing file: WorkItem(…). The error was:
-- OSError('…')."). The outer repr doubles the backslashes of the quoted error.
CREATE MACRO _error_cause(exception) AS CASE
    WHEN contains(exception, 'Failed processing file: ')
        THEN coalesce(
            replace(
                nullif(regexp_extract(exception, 'The error was: (.+?)\.?["'']?\)?$', 1, 's'), ''),
                '\\',
                '\'
            ),
            exception
        )
    ELSE exception
END;
