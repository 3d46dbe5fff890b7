"""deconv-lint: mistakes in models."""
