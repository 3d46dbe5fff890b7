"""The fallback: convolutions on NumPy and its BLAS, where the compiled kernel cannot run."""
