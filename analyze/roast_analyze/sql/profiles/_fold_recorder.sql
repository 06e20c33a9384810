-- Needs: nothing
-- Stacks for flame graphs, without the functions of the recorder that wrap those of coffea,
-- uproot and Dask. A function of the recorder is skipped, so that its callee follows its caller.
-- If it is innermost, its self time stays visible as one function, "(roast recorder)". The
-- demo's analysis is in the same package but not part of the recorder.
CREATE MACRO _is_recorder(frame) AS
CASE
    -- Much faster than the expressions, and false for nearly all frames.
    WHEN NOT contains(coalesce(frame.filename, ''), 'roast_recorder') THEN false
    ELSE regexp_matches(frame.filename, '(^|[/\\])roast_recorder[/\\]')
        AND NOT regexp_matches(frame.filename, '(^|[/\\])roast_recorder[/\\]demo[/\\]')
END;

-- items are the labels or the frames of a stack, and recorder is the one for the self time.
CREATE MACRO _fold_recorder(items, frames, recorder) AS
list_where(items, list_transform(frames, lambda frame: NOT _is_recorder(frame)))
|| CASE WHEN _is_recorder(frames[-1]) THEN [recorder] ELSE [] END;

CREATE MACRO _folded_stack(stack, frames) AS _fold_recorder(stack, frames, '(roast recorder)');

CREATE MACRO _folded_frames(frames) AS
_fold_recorder(frames, frames, {name: '(roast recorder)', filename: NULL, line_number: NULL});
