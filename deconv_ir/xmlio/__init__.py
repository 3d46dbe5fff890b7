"""IR files: reading, writing, weights.  The only room that knows XML."""

from .reader import read
from .weights import Weights

__all__ = ["Weights", "read"]
