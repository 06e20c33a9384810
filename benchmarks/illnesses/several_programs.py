"""Two illnesses at once."""
