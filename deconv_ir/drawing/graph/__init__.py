"""A graph as nested boxes: groups, repeated blocks, layers, their captions and coordinates."""
