"""The fork hook: state that is reset in a forked child, where no other thread of the parent runs.

The pool in C (`_native/runtime/threads.c`) resets itself by `pthread_atfork`, since libraries may
also fork without Python, which calls no hook of `os.register_at_fork` then.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_resets: list[Callable[[], object]] = []


def reset_in_child(reset: Callable[[], object]) -> Callable[[], object]:
    """Have a function called in forked children, after those that were registered before it."""
    _resets.append(reset)
    return reset


def _reset_all() -> None:
    for reset in _resets:
        reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
