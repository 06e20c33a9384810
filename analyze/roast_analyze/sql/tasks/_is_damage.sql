-- Needs: nothing
-- Return whether an error of reading means that the file is probably damaged, from its type and text.
CREATE MACRO _is_damage(exception_type, error) AS
    regexp_matches(exception_type, '(zlib\.e|LZMAE|DecompressionE|DeserializationE)rror$')
    OR contains(error, 'not a ROOT file');
