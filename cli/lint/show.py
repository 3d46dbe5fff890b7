"""--show-files and --show-settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deconv_ir.linter.settings import SETTINGS, SettingForm

from ..shared.common import to_json

if TYPE_CHECKING:
    from deconv_ir.linter.config import Config

    from .settings import LintSettings


def list_files(files: list[str]) -> str:
    """List files, one per line."""
    return "".join(f"{file}\n" for file in files)


def list_settings(files: list[str], settings: LintSettings, format_: str) -> str:
    """Show the settings in effect, and the rules that run, for each settings file in use."""
    groups: dict[Config, list[str]] = {}
    for file in files or [""]:
        groups.setdefault(settings.config(file), []).append(file)
    shown = [
        {
            "settings_file": config.file,
            "files": names,
            "settings": _values(settings.effective(config)),
            "rules": sorted(settings.options(names[0]).rules),
        }
        for config, names in groups.items()
    ]
    if format_ == "json":
        return to_json(shown)
    return "\n".join(map(_as_toml, shown))


def _values(config: Config) -> dict[str, Any]:
    """Return the settings by name, in the form of settings files; None if not set."""
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        value = getattr(config, setting.name.replace("-", "_"))
        values[setting.name] = (
            dict(value) if setting.form in (SettingForm.LISTS, SettingForm.WORDS) else value
        )
    return values | {family: dict(table) for family, table in config.tables}


def _as_toml(group: dict[str, Any]) -> str:
    """Write settings in the form of a settings file, with the rest in comments."""
    files = group["files"]
    more = f", and {len(files) - 1} more" if len(files) > 1 else ""
    lines = [
        f"# {files[0] or 'no file'}{more}",
        f"# settings from {group['settings_file'] or 'no file: defaults and options'}",
    ]
    for name, value in group["settings"].items():
        lines.append(f"# {name} is not set" if value is None else f"{name} = {_toml(value)}")
    return "\n".join([*lines, f"# rules that run: {', '.join(group['rules'])}"]) + "\n"


def _toml(value: Any) -> str:
    """Write a value as TOML; its strings are written as in JSON."""
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return json.dumps(value)
