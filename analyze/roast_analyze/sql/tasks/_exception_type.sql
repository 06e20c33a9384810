-- Needs: nothing
-- Type of an exception from its text, such as KeyError, with the module if the text contains it. The
-- text of errors of zlib and struct is only error('…').
CREATE MACRO _exception_type(exception) AS CASE
    WHEN regexp_matches(exception, '^\s*error\(["'']Error -?\d+ while ') THEN 'zlib.error'
    WHEN regexp_matches(exception, '^\s*error\(["''](un)?pack') THEN 'struct.error'
    ELSE nullif(regexp_extract(exception, '^\s*([\w.]*\w)', 1), '')
END;
