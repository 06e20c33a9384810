-- Needs: nothing
-- Path of a file within its package or project.
CREATE MACRO _file_tail(filename) AS
array_to_string(
    string_split(
        regexp_replace(replace(coalesce(filename, '?'), '\', '/'), '^.*/site-packages/', ''), '/'
    )[-3:],
    '/'
);

-- Function and file of a frame. A function that was pickled by value has no file.
CREATE MACRO _frame_place(frame) AS
frame.name || CASE WHEN frame.filename LIKE '<%' THEN '' ELSE ' (' || _file_tail(frame.filename) || ')' END;
