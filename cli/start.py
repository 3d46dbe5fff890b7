"""The entry points of the commands."""

from __future__ import annotations

import functools
import gc
import importlib


def _start(module: str) -> None:
    """Run a command, at first without the garbage collector.

    Most runs read one small file, and objects of imported modules live until the end: this saves
    10 ms of deconv-run (bench/startup.py).  Commands with more work enable it.
    """
    gc.disable()
    importlib.import_module(f".{module}", __package__).main()


cut = functools.partial(_start, "cut.command")
diff = functools.partial(_start, "diff.command")
group = functools.partial(_start, "group")
lint = functools.partial(_start, "lint.command")
run = functools.partial(_start, "run.command")
show = functools.partial(_start, "show.command")
spec = functools.partial(_start, "spec.command")
