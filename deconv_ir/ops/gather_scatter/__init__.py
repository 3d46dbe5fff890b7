"""Elements by index: gather, scatter, sorting."""
