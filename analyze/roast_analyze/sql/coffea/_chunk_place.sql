-- Needs: nothing
-- Name of a chunk for people: dataset, file without its folder, and entries.
CREATE MACRO _chunk_place(dataset, filename, entry_start, entry_stop) AS
    concat_ws(
        ' ', dataset, regexp_extract(filename, '[^/\\]*$'), format('{:,}–{:,}', entry_start, entry_stop)
    );
