"""Layers that run bodies: If, Loop and TensorIterator."""
