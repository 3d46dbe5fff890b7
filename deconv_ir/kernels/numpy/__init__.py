"""The fallback: convolutions on NumPy and its BLAS, if the compiled kernel cannot run."""
