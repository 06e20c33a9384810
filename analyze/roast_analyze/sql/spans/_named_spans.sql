-- Needs: spans
-- Spans that the program of the user named. Dask names those outside of them `default`: another one
-- each time such work is submitted and all earlier work of this kind is done.
CREATE VIEW _named_spans AS
FROM spans
WHERE name IS DISTINCT FROM 'default';
