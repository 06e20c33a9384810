-- Needs: nothing
-- Tree, entries and dataset as text in parentheses; null if none of them is known.
CREATE MACRO _entries_text(treename, entry_start, entry_stop, dataset) AS ' (' || nullif(concat_ws(
    ', ',
    'tree ' || treename,
    format('entries {:,} to {:,}', entry_start, entry_stop),
    'dataset ' || dataset
), '') || ')';
