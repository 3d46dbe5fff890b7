"""deconv-cut: a part of a model."""
