"""The commands, one folder each."""
