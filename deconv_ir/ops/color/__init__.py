"""Conversions of color images."""
