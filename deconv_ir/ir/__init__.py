"""A network of any file format: graph, operations, shapes, geometry."""
