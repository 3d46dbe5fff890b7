"""Malicious input and adverse conditions: see docs/reliability.md."""
