"""Execution of a graph: the order of its layers, and their memory.

`analysis` finds the constant and unimplemented layers, `prepare` folds constants and packs
filters, `planner` decides for given shapes which arrays are overwritten, which buffers are reused
and how much memory that takes, `executor` runs the plan.
"""

from deconv_ir.execute.executor import Executor

__all__ = ["Executor"]
