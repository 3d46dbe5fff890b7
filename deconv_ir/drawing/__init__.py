"""Drawings of graphs: nested boxes, their layout, SVG and PNG."""
