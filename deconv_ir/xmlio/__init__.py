"""IR files: reading, writing, weights.  The only room that knows XML."""

from .reader import read
from .weights import Weights
from .writer import write

__all__ = ["Weights", "read", "write"]
