"""The library's hints in the words of a command: its messages name no options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError

if TYPE_CHECKING:
    from deconv_ir.ir.findings import Finding

_OPTIONS = {
    "a baseline is written first": "--update-baseline writes one",
    "another weights file can be named": "--weights FILE names another file",
    "jobs=1 takes less": "--jobs 1 takes less",
    "the documentation lists all rules": "--list-rules shows all rules",
    "cast=True converts it": "--cast converts it",
    'cast="wrap" converts it all the same': "--cast=wrap converts it all the same",
    "memory_limit sets another limit": "--memory-limit SIZE sets another limit",
    "run(outputs=...) runs what does not need them": "--until or --output-layer runs what does "
    "not need them",
    "semantics='spec' or 'openvino' chooses": "--semantics spec|openvino chooses",
    "weights names another file": "--weights FILE names another file",
}
"""A hint of the library -> the option of a command that does the same."""


def option_for(hint: str | None) -> str | None:
    """Return a hint as a command gives it."""
    return hint if hint is None else _OPTIONS.get(hint, hint)


def as_line(found: DeconvError | Finding) -> str:
    """Return an error or a finding as one line, with the option that helps."""
    if isinstance(found, DeconvError):
        found.hint = option_for(found.hint)
    else:
        found = found._replace(hint=option_for(found.hint))
    return str(found)
