"""Constants, ranges, and the ends of a model."""
