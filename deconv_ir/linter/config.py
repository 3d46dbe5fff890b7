"""Settings from files: ``[tool.deconv-lint]`` in pyproject.toml, or deconv-lint.toml."""

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.formats.files import read_input
from deconv_ir.suggestions import nearest

FILE_NAME = "deconv-lint.toml"
PROJECT = "pyproject.toml"

MAX_BYTES = 4 << 20
"""Size above which a file of settings is rejected."""


class Config(NamedTuple):
    """Settings of one configuration file; None: not set."""

    file: str | None = None
    """The file of the settings; patterns and paths are relative to its folder."""
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    severity: str | None = None
    semantics: str | None = None
    baseline: str | None = None
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Pattern of paths -> rules."""
    severities: tuple[tuple[str, str], ...] = ()
    """Rule -> severity."""
    target: tuple[str, ...] | None = None
    deep: bool = False
    preview: bool = False
    tables: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    """Family of another package's rules -> its settings, by name."""
    docs_url: str | None = None

    @property
    def folder(self) -> str:
        """The base of relative patterns and paths."""
        return os.path.dirname(self.file or "")

    @property
    def baseline_file(self) -> str | None:
        """Path of the baseline."""
        return self.baseline and os.path.join(self.folder, self.baseline)

    def ignored_for(self, path: str) -> tuple[str, ...]:
        """Return the rules that `per-file-ignores` disables for a file."""
        if self.file is None or not self.per_file_ignores:
            return ()
        return tuple(
            rule
            for pattern, rules in self.per_file_ignores
            if matches(path, pattern, self.folder)
            for rule in rules
        )


def matches(path: str, pattern: str, folder: str) -> bool:
    """Whether a path matches a pattern: by its name, or relative to `folder`."""
    from fnmatch import fnmatch

    absolute = os.path.abspath(path)
    if fnmatch(os.path.basename(absolute), pattern):
        return True
    whole = os.path.join(os.path.abspath(folder), pattern)
    return fnmatch(absolute, whole) or fnmatch(absolute, f"{whole}/*")


def find_config(folder: str, known: dict[str, Config] | None = None) -> Config:
    """Return the nearest settings, from a folder upwards; empty settings if none are found.

    In one folder deconv-lint.toml takes precedence over pyproject.toml.  `known` caches the
    settings of folders between calls.

    Raises
    ------
    DeconvError
        A file of settings cannot be read, or has a mistake.
    """
    known = {} if known is None else known
    passed: list[str] = []
    config = Config()
    at = os.path.abspath(folder)
    while True:
        if at in known:
            config = known[at]
            break
        passed.append(at)
        found = _own_config(at)
        if found is not None:
            config = found
            break
        above = os.path.dirname(at)
        if above == at:
            break
        at = above
    known.update(dict.fromkeys(passed, config))
    return config


def _own_config(folder: str) -> Config | None:
    """Return the settings of a folder."""
    own = os.path.join(folder, FILE_NAME)
    # `lexists`: folders, FIFOs and links that lead nowhere are errors of reading, not passed over.
    if os.path.lexists(own):
        return read_config(own)
    project = os.path.join(folder, PROJECT)
    if os.path.lexists(project) and _mentions_us(project):
        tools = _tables(project).get("tool", {})
        if isinstance(tools, Mapping) and "deconv-lint" in tools:
            return read_config(project)
    return None


def _mentions_us(project: str) -> bool:
    """Whether the file may have settings of the linter: most do not, and loading TOML is slow."""
    text = read_input(project, MAX_BYTES, "the settings")
    if b"deconv-lint" not in text:
        return False
    tables = re.search(rb"""(?m)^\s*\[?\s*["']?tool\b""", text)
    return tables is not None and text.find(b"deconv-lint", tables.start()) >= 0


def _tables(file: str) -> dict[str, Any]:
    import tomllib

    data = read_input(file, MAX_BYTES, "the settings")
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise DeconvError(f"the settings are not valid TOML: {error}", file=file) from error


def _table(tables: Mapping[str, Any], name: str, file: str) -> dict[str, Any]:
    """Return a nested table; empty if it does not exist."""
    found = tables.get(name, {})
    if not isinstance(found, dict):
        raise DeconvError(f"{name} must be a table, found {found!r}", file=file)
    return found


def read_config(file: str) -> Config:
    """Read one file of settings.

    Raises
    ------
    DeconvError
        The file cannot be read, or has a mistake.
    """
    tables = _tables(file)
    if os.path.basename(file) == PROJECT:
        tables = _table(_table(tables, "tool", file), "deconv-lint", file)
    from deconv_ir.linter.settings import BY_NAME

    values: dict[str, Any] = {"file": file}
    others: list[tuple[str, tuple[tuple[str, Any], ...]]] = []
    for key, value in tables.items():
        setting = BY_NAME.get(key)
        if setting is None:
            others.append((key, _of_package(key, value, file)))
            continue
        try:
            values[key.replace("-", "_")] = setting.read(value)
        except ValueError as error:
            raise DeconvError(str(error), file=file) from None
    return Config(**values, tables=tuple(others))


def _of_package(family: str, table: Any, file: str) -> tuple[tuple[str, Any], ...]:
    """Return the settings of another package's rules, by name."""
    from deconv_ir.linter.plugins import load_rules
    from deconv_ir.linter.settings import BY_NAME, SETTINGS_OF

    load_rules()
    if family not in SETTINGS_OF:
        known = [*BY_NAME, *SETTINGS_OF]
        raise DeconvError(
            f"deconv-lint has no setting {family!r}", file=file, hint=nearest(family, known)
        )
    if not isinstance(table, dict):
        raise DeconvError(f"{family} must be a table, found {table!r}", file=file)
    declared = {setting.name: setting for setting in SETTINGS_OF[family]}
    found = []
    for name, value in table.items():
        if name not in declared:
            raise DeconvError(
                f"{family} has no setting {name!r}", file=file, hint=nearest(name, declared)
            )
        try:
            found.append((name, declared[name].read(value)))
        except ValueError as error:
            raise DeconvError(f"{family}: {error}", file=file) from None
    return tuple(found)
