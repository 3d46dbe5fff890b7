"""Exact tiles: a network computed box by box, for arrays larger than memory."""
