"""Rows of each layer of the table, with values of the catalogue or of loops over its formulas.

Source of the formulas: OpenVINO 2020.3, "Intermediate Representation Notation Reference Catalog".
"""

from .detection import DETECTIONS
from .elementwise import ACTIVATIONS, ELEMENTWISE
from .normalization import NORMALIZATIONS
from .recurrent import RECURRENT
from .resampling import RESAMPLINGS
from .selection import SELECTIONS
from .shapes import MOVES
from .windows import CONVOLUTIONS, DECONVOLUTIONS, POOLINGS, PRODUCTS

ROWS = [
    *CONVOLUTIONS,
    *DECONVOLUTIONS,
    *POOLINGS,
    *PRODUCTS,
    *ELEMENTWISE,
    *ACTIVATIONS,
    *NORMALIZATIONS,
    *MOVES,
    *SELECTIONS,
    *RESAMPLINGS,
    *RECURRENT,
    *DETECTIONS,
]
