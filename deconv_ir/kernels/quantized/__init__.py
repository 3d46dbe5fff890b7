"""Convolutions of quantised data in integers: exact sums, rounded once."""
