"""All settings: their form, meaning and check, from which page and JSON schema are generated."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple


class SettingForm(enum.Enum):
    """Forms of values, with their names in messages."""

    LIST = "a list of strings"
    WORD = "a string"
    FLAG = "true or false"
    NUMBER = "a whole number"
    LISTS = "a table of pattern = [rules]"
    WORDS = "a table of rule = 'severity'"


class Setting(NamedTuple):
    """One setting."""

    name: str
    form: SettingForm
    default: Any
    """Text of the default value on the page; of a setting of another package, the value."""
    text: str
    """The description of the setting."""
    choices: tuple[str, ...] = ()
    """The valid words; empty: all words."""

    def read(self, value: Any) -> Any:
        """Return a value from TOML in the form of `Config`.

        Raises
        ------
        ValueError
            The value has another form; the message states the expected one.
        """
        match self.form:
            case SettingForm.LIST if _is_list(value):
                return tuple(value)
            case SettingForm.WORD if isinstance(value, str):
                return value
            case SettingForm.FLAG if isinstance(value, bool):
                return value
            case SettingForm.NUMBER if isinstance(value, int) and not isinstance(value, bool):
                return value
            case SettingForm.LISTS if isinstance(value, dict) and all(
                map(_is_list, value.values())
            ):
                return tuple((pattern, tuple(rules)) for pattern, rules in value.items())
            case SettingForm.WORDS if isinstance(value, dict) and _are_words(value.values()):
                return tuple(value.items())
        raise ValueError(f"{self.name} must be {self.form.value}, found {value!r}")

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of its values."""
        word: dict[str, Any] = {"type": "string"} | (
            {"enum": list(self.choices)} if self.choices else {}
        )
        words: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
        form: dict[str, Any] = {
            SettingForm.LIST: words,
            SettingForm.WORD: word,
            SettingForm.FLAG: {"type": "boolean"},
            SettingForm.NUMBER: {"type": "integer"},
            SettingForm.LISTS: {"type": "object", "additionalProperties": words},
            SettingForm.WORDS: {"type": "object", "additionalProperties": word},
        }[self.form]
        return {"description": self.text} | form

    @property
    def form_shown(self) -> str:
        """Text of the form on the page."""
        if self.choices and self.form is SettingForm.WORD:
            return ", ".join(f"`{word}`" for word in self.choices)
        return self.form.value


SEVERITIES = ("error", "warning", "info")

SETTINGS = (
    Setting("select", SettingForm.LIST, "all", "Rules to run, regardless of severity"),
    Setting("extend-select", SettingForm.LIST, "none", "Rules to run in addition"),
    Setting(
        "ignore",
        SettingForm.LIST,
        "none",
        "Rules to leave out; if `select` matches too, the more specific entry wins",
    ),
    Setting("fixable", SettingForm.LIST, "all", "Rules whose findings `--fix` fixes"),
    Setting("unfixable", SettingForm.LIST, "none", "Rules whose findings `--fix` leaves"),
    Setting("severity", SettingForm.WORD, "`warning`", "Rules below it are not run", SEVERITIES),
    Setting(
        "severities",
        SettingForm.WORDS,
        "none",
        "Severities in place of the rules' own",
        SEVERITIES,
    ),
    Setting(
        "semantics",
        SettingForm.WORD,
        "`spec`",
        "Which rules apply where documents and runtime differ",
        ("spec", "openvino"),
    ),
    Setting(
        "exclude",
        SettingForm.LIST,
        "none",
        "Patterns of files in folders that are not checked; a file that is named is",
    ),
    Setting("per-file-ignores", SettingForm.LISTS, "none", "Rules to leave out for some files"),
    Setting(
        "baseline",
        SettingForm.WORD,
        "none",
        "File of known findings, relative to this settings file",
    ),
    Setting(
        "target",
        SettingForm.LIST,
        "none",
        "Releases of OpenVINO that get a verdict, such as `openvino=2024.6` or `openvino>=2023.0`",
    ),
    Setting("deep", SettingForm.FLAG, "`false`", "Read all weights"),
    Setting("preview", SettingForm.FLAG, "`false`", "Run the rules in preview, too"),
    Setting(
        "docs-url",
        SettingForm.WORD,
        "the repository of the installation",
        "Address of the page of rules (rules.md), for `helpUri` in SARIF reports",
    ),
)

SETTINGS_OF: dict[str, tuple[Setting, ...]] = {}
"""Family of another package's rules -> their settings; see `settings`."""

BY_NAME = {setting.name: setting for setting in SETTINGS}


def settings(family: str, *declared: Setting) -> None:
    """Declare the settings of another package's rules: a table of deconv-lint's settings.

    Rules read them by `LintContext.setting`.

    Parameters
    ----------
    family : str
        The letters of the codes, in small letters: the name of the table.
    *declared : Setting

    Examples
    --------
    >>> from deconv_ir.lint_rules import Setting, SettingForm, settings
    >>> settings("acme", Setting("most-channels", SettingForm.NUMBER, 512, "Limit of ACME101"))
    """
    SETTINGS_OF[family] = declared


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of deconv-lint.toml, and of ``[tool.deconv-lint]``.

    It has the tables of those packages whose rules are loaded.
    """
    tables = {
        family: {
            "type": "object",
            "additionalProperties": False,
            "properties": {setting.name: setting.schema() for setting in declared},
        }
        for family, declared in SETTINGS_OF.items()
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of deconv-lint",
        "type": "object",
        "additionalProperties": False,
        "properties": {setting.name: setting.schema() for setting in SETTINGS} | tables,
    }


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and _are_words(value)


def _are_words(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)
