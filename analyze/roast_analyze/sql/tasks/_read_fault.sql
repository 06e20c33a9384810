-- Needs: _is_damage
-- Return what an error of reading means, from its type and text: damage (of the file, probably), absent (no such
-- file), denied (rights or credentials), timeout, no connection, server error (that a server reported), or null
-- if it is not known. Only damage is a fault of the file. Numbers are errors of XRootD's protocol: not found, not
-- authorized, TLS required and authentication failed; timeouts; no server. A scrubbed trace keeps the words of
-- these patterns, unless they begin as sentences do.
CREATE MACRO _read_fault(exception_type, error) AS CASE
    WHEN _is_damage(exception_type, error) THEN 'damage'
    WHEN regexp_matches(error, '(no such file|FileNotFound|\[3011\])', 'i') THEN 'absent'
    WHEN regexp_matches(
        error,
        '(permission ?(denied|error)|authentica|authoriz|forbidden|credential|certificate|\[(3010|3028|3030)\])',
        'i'
    ) THEN 'denied'
    WHEN regexp_matches(exception_type, 'Time(d)?[oO]ut')
        OR regexp_matches(
            error,
            '(timed[ -]?out|(socket|read|connect|connection|gateway|request|operation) time-?out'
            '|operation expired|\[(3034|3035)\])',
            'i'
        )
        THEN 'timeout'
    WHEN regexp_matches(exception_type, '(Connect|Disconnect|Unreachable|BrokenPipe|IncompleteRead|gaierror)')
        OR regexp_matches(
            error,
            '(connection (error|refused|reset|aborted|closed|lost)|disconnected|(network|host) is unreachable'
            '|no route to host|name resolution|name or service not known|socket error|\[3014\])',
            'i'
        ) THEN 'no connection'
    WHEN regexp_matches(
        error, '(server responded|redirect limit|bad gateway|service (temporarily )?unavailable|too many requests)', 'i'
    ) THEN 'server error'
END;
