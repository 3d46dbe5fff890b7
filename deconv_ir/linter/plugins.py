"""Lint rules of other packages, found as entry points."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from deconv_ir.entry_points import installed, is_mentioned
from deconv_ir.errors import DeconvError, InputError, one_line
from deconv_ir.linter.rule import FAMILIES, REGISTRY, letters_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "deconv_ir.lint_rules"
"""Group of entry points; each has the letters of its rules' codes as its name, and a module."""

_LETTERS = r"[A-Z]{2,12}"
_CODE = r"[A-Z]{2,12}[0-9]{1,6}"
_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)+"


@functools.cache
def load_rules() -> tuple[str, ...]:
    """Import the installed packages with rules, once; return their names and versions.

    Raises
    ------
    InputError
        A package cannot be imported, or its rules clash with others.
    """
    if not is_mentioned(GROUP):
        return ()
    found = installed(GROUP)
    stamps = []
    for number, entry_point in enumerate(found):
        if any(other.name == entry_point.name for other in found[:number]):
            other = next(e for e in found if e.name == entry_point.name)
            raise InputError(
                f"two packages have lint rules {entry_point.name}: {_package(other)} and "
                f"{_package(entry_point)}; uninstall one of them"
            )
        stamps.append(_load(entry_point))
    return tuple(stamps)


def _package(entry_point: EntryPoint) -> str:
    """Return the name and the version of the package of an entry point."""
    package = entry_point.dist
    return entry_point.value if package is None else f"{package.name} {package.version}"


def _load(entry_point: EntryPoint) -> str:
    """Import the rules of one package; add all of them, or none."""
    letters, before = entry_point.name, set(REGISTRY)
    where = f"lint rules {letters} of {_package(entry_point)}"
    try:
        if not re.fullmatch(_LETTERS, letters) or letters == "IR" or letters.lower() in _built_in():
            raise InputError(
                f"{letters!r} cannot be the letters of a package's codes: they are 2 to 12 capital "
                "letters, other than IR and the names of families"
            )
        module = entry_point.load()
        codes = [code for code in REGISTRY if code not in before]
        _require_valid(letters, codes)
        from deconv_ir.linter.catalogue import register

        for code in codes:
            register(REGISTRY[code])
    except Exception as error:  # code of another package can raise any error
        from deconv_ir.linter.settings import SETTINGS_OF

        for code in REGISTRY.keys() - before:
            del REGISTRY[code]
        SETTINGS_OF.pop(letters.lower(), None)
        reason = error.message if isinstance(error, DeconvError) else _named(error)
        raise InputError(f"{where} cannot be loaded: {reason}") from error
    file = getattr(module, "__file__", None)
    return f"{_package(entry_point)} {_time(file)}"


def _built_in() -> set[str]:
    return {*FAMILIES.values(), "all"}


def _named(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}")


def _time(file: str | None) -> int:
    """Return when a module changed, for the key of the cache."""
    import os

    try:
        return os.stat(file).st_mtime_ns if file else 0
    except OSError:
        return 0


def _require_valid(letters: str, codes: list[str]) -> None:
    if not codes:
        raise InputError("the module declares no rule")
    names = {rule.name: code for code, rule in REGISTRY.items() if code not in codes}
    for code in codes:
        rule = REGISTRY[code]
        if letters_of(code) != letters or not re.fullmatch(_CODE, code):
            raise InputError(f"rule {code} must have a code of {letters} and a number")
        if not re.fullmatch(_NAME, rule.name):
            raise InputError(
                f"rule {code} is named {rule.name!r}; a name is words in small letters with hyphens"
            )
        if rule.name in names:
            raise InputError(f"rule {code} has the name of {names[rule.name]}, {rule.name}")
        if not rule.title.strip():
            raise InputError(f"rule {code} has no docstring, which is its documentation")
        names[rule.name] = code
