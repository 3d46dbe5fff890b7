"""Comparison of two models: structure, weights, and computed tensors."""
