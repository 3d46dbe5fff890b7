"""Layers that run graphs of their own: If, Loop and TensorIterator."""
