-- Needs: _counted_stacks
-- Records: profile
CREATE TABLE _profile_samples AS FROM _counted_stacks;
