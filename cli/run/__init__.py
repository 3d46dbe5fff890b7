"""deconv-run: a model, run on arrays."""
