"""Execution of a graph: the order of its layers, and their memory.

`analysis` finds the constant and unimplemented layers, `prepare` folds constants and packs
filters, `planner` decides for given shapes which arrays are overwritten, which place in the arena
each takes and how much memory that is, `executor` runs the plan, `request` keeps its memory.
"""

from deconv_ir.execute.executor import Executor

__all__ = ["Executor"]
