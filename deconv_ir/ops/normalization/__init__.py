"""Normalisations and SoftMax."""
