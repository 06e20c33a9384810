-- Needs: nothing
-- Text of the error that caused another one. coffea raises Exception("Failed processing file:
-- WorkItem(…). The error was: OSError('…').") and quotes the cause in it, so that backslashes
-- and, within double quotes, nothing else are doubled.
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
