"""Two models, compared: structure, weights, and the tensors that they compute."""
