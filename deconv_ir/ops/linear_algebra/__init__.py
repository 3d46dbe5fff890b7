"""Matrix products, attention and Fourier transforms."""
