"""deconv-diff: differences of two models."""
