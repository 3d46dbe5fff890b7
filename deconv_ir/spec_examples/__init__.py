"""Examples of operation specifications: found, checked, fixed, generated, verified.

Documents print layers with dims computed by hand.  `check` computes them; `fix` writes the correct
ones; `generate` makes examples, pages and golden arrays from a short file; `golden` makes and
verifies the arrays; `diagram` draws the computation on an axis.
"""
