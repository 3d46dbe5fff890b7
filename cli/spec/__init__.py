"""deconv-spec: examples of operation specifications."""
