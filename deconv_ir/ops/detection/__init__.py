"""Boxes and regions of interest."""
