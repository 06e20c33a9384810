-- Needs: _changes_by
-- Changes for buckets of the default length, from which two views and several figures are computed.
CREATE TABLE _bucket_changes AS FROM _changes_by(NULL);
