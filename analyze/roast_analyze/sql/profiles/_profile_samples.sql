-- Needs: _counted_stacks
CREATE TABLE _profile_samples AS FROM _counted_stacks;
