"""IR files: reading, writing, weights.  The only room that knows XML."""

from .reader import read, read_bytes
from .weights import Weights, WeightsInMemory

__all__ = ["Weights", "WeightsInMemory", "read", "read_bytes"]
