"""Execution of a graph: what runs when, in which memory.

`analysis` tells which layers are needed, `prepare` does once what depends on
constants alone, `plan` decides for given shapes what is overwritten, which
buffers are used again and how much memory that takes, `executor` runs it.
"""

from deconv_ir.execute.executor import Executor

__all__ = ["Executor"]
