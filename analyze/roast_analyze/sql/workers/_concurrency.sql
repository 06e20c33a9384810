-- Needs: _concurrency_by
CREATE TABLE _concurrency AS FROM concurrency_by(NULL);
