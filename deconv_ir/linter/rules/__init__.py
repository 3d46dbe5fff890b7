"""Lint rules, one a file."""
