"""Execution of a graph: the order of its layers, and their memory.

`analysis` finds the constant and unimplemented layers, `prepare` folds constants and packs filters,
`planner` decides for given shapes which arrays are overwritten, and the place of each array in the
arena, `executor` runs the plan, `request` keeps its memory.
"""

from deconv_ir.execute.executor import Executor

__all__ = ["Executor"]
