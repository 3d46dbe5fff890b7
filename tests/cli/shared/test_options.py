"""Commands declare their options alike: one record each, and shared options once."""

from __future__ import annotations

import importlib
import itertools

import click
import pytest
from deconv_cli.shared.options import PREPROCESSING, Options, Preprocessing, flag

COMMANDS = ("cut", "diff", "lint", "run", "show", "spec")


def records_of(name: str) -> list[type[Options]]:
    module = importlib.import_module(f"deconv_cli.{name}.request")
    return [
        found
        for found in vars(module).values()
        if isinstance(found, type)
        and issubclass(found, Options)
        and found.__module__ == module.__name__
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_options_of_its_records(name: str) -> None:
    command = importlib.import_module(f"deconv_cli.{name}.command").command
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    declared = {field for record in records_of(name) for field in record.fields}
    shown = {p.name for c in commands for p in c.params if p.expose_value}
    assert shown == declared


@pytest.mark.parametrize("name", ["run", "diff", "show"])
def test_options_that_preprocess_are_one_record(name: str) -> None:
    """They follow --shape in the help of each command that runs a model."""
    (record,) = records_of(name)
    assert issubclass(record, Preprocessing)
    assert not set(PREPROCESSING) & set(vars(record))
    fields = iter(record.fields)
    assert "shapes" in fields  # consumes the fields up to it
    assert tuple(itertools.islice(fields, len(PREPROCESSING))) == PREPROCESSING


def test_options_of_a_base_follow_the_named_field() -> None:
    class Request(Preprocessing, after="first"):
        first: bool = flag("First.")
        last: bool = flag("Last.")

    assert tuple(Request.fields) == ("first", *PREPROCESSING, "last")
    assert [name for name, _ in Request.declared] == list(Request.fields)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_default_of_a_choice_or_number(name: str) -> None:
    command = importlib.import_module(f"deconv_cli.{name}.command").command
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    silent = {
        found.name
        for each in commands
        for found in each.params
        if isinstance(found, click.Option)
        and isinstance(found.type, click.Choice | click.IntRange | click.FloatRange)
        and isinstance(found.default, str | int | float)
        and not found.is_flag
        and not found.show_default
        and "efault" not in (found.help or "")
    }
    assert not silent
