"""Interpolation and sampling of grids."""
