"""Models changed on request: other input shapes, preprocessing, other constants."""
