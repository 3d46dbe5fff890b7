"""The fork hook: state that is reset in a forked child, where other threads do not exist.

The pool in C (`_native/runtime/threads.c`) resets itself by `pthread_atfork`, since libraries may
also fork without Python, and then hooks of `os.register_at_fork` are not called.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_resets: list[Callable[[], object]] = []


def reset_in_child(reset: Callable[[], object]) -> Callable[[], object]:
    """Register a function to be called in forked children, after those registered before it."""
    _resets.append(reset)
    return reset


def _reset_all() -> None:
    for reset in _resets:
        reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
