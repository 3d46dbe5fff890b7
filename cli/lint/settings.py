"""Combination of command line and settings files into the options for each file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError
from deconv_ir.ir.shapes import Shape
from deconv_ir.linter.catalogue import find_rule, select_rules
from deconv_ir.linter.config import Config, find_config, matches, read_config
from deconv_ir.linter.options import CheckOptions, choose
from deconv_ir.linter.plugins import load_rules
from deconv_ir.linter.rule import Rule, RuleState

from ..shared.common import Mistake, warn

if TYPE_CHECKING:
    from .request import LintRequest

EVERY_RELEASE = ("openvino>=2020.1",)
"""The target of --needs: all releases since IR version 10."""


class LintSettings:
    """The options of the command line, which override the nearest settings file."""

    def __init__(self, request: LintRequest) -> None:
        load_rules()
        self.select = _split(request.select)
        self.ignore = _split(request.ignore)
        self.extend_select = _split(request.extend_select)
        self.fixable = _split(request.fixable)
        self.unfixable = _split(request.unfixable)
        self.severity = request.severity
        self.semantics = request.semantics
        self.reshape = dict(map(_parse_shape, request.shapes))
        self.deep = request.deep
        self.target = request.target or (EVERY_RELEASE if request.needs else ())
        self.preview = request.preview
        self.isolated = request.isolated
        self.given = None if request.config is None else read_config(request.config)
        self._configs: dict[str, Config] = {}
        self._warned: list[Rule] = []
        self._options: dict[tuple[Config, tuple[str, ...]], CheckOptions] = {}

    def config(self, file: str) -> Config:
        """Return the settings for a file: the nearest ones, from its folder upwards."""
        if self.isolated:
            return Config()
        if self.given is not None:
            return self.given
        return find_config(os.path.dirname(file), self._configs)

    def is_excluded(self, file: str) -> bool:
        """Whether the settings exclude a file that was found in a folder."""
        config = self.config(file)
        if config.file is None or not config.exclude:
            return False
        return any(matches(file, p, config.folder) for p in config.exclude)

    def options(self, file: str) -> CheckOptions:
        """Return the options for a file."""
        config = self.config(file)
        ignored = config.ignored_for(file)
        found = self._options.get((config, ignored))
        if found is None:
            try:
                found = self._choose(config)
                silent = select_rules(ignored)
            except DeconvError as error:
                self._choose(Config())  # mistakes on the command line are reported without a file
                raise error.locate(file=config.file) from None
            found = found._replace(rules=found.rules - silent, hidden=found.hidden - silent)
            self._options[config, ignored] = found
        return found

    def effective(self, config: Config) -> Config:
        """Return settings, overridden by those of the command line."""
        return config._replace(
            select=self.select or config.select or (),
            ignore=(*(config.ignore or ()), *self.ignore),
            extend_select=(*(config.extend_select or ()), *self.extend_select),
            fixable=self.fixable or config.fixable or (),
            unfixable=(*(config.unfixable or ()), *self.unfixable),
            severity=self.severity or config.severity or "warning",
            semantics=self.semantics or config.semantics or "spec",
            deep=self.deep or config.deep,
            target=self.target or config.target or (),
            preview=self.preview or config.preview,
        )

    def _choose(self, config: Config) -> CheckOptions:
        chosen = self.effective(config)
        self._warn_of_deprecated((*(chosen.select or ()), *(chosen.extend_select or ())))
        return choose(
            select=chosen.select or (),
            ignore=chosen.ignore or (),
            extend_select=chosen.extend_select or (),
            severity=chosen.severity or "",
            semantics=chosen.semantics or "",
            severities=dict(chosen.severities),
            reshape=self.reshape,
            deep=chosen.deep,
            fixable=chosen.fixable or (),
            unfixable=chosen.unfixable or (),
            targets=chosen.target or (),
            preview=chosen.preview,
            tables=chosen.tables,
        )

    def _warn_of_deprecated(self, words: tuple[str, ...]) -> None:
        """Warn once of each deprecated rule that is named."""
        for word in words:
            rule = find_rule(word)
            if rule is not None and rule.state is RuleState.DEPRECATED and rule not in self._warned:
                self._warned.append(rule)
                instead = f"; use {rule.successor}" if rule.successor else ""
                warn(f"rule {rule.code} {rule.name} is deprecated{instead}")


def _split(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for word in words for part in word.split(",") if part.strip())


def _parse_shape(text: str) -> tuple[str, Shape]:
    from ..shared.shapes import OPTION, parse_named_shape

    if not text.rpartition("=")[0]:
        raise Mistake(f"{OPTION} {text}: expected NAME=SHAPE, for example data=1,3,64,64")
    return parse_named_shape(text)
