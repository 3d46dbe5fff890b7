"""The network, whatever file it came from: graph, operations, shapes, geometry."""
