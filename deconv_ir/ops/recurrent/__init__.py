"""Recurrent cells and sequences."""
