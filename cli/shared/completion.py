"""Shell completion of layers of the model and of rules of the linter."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from deconv_ir.errors import DeconvError

from .common import STREAM

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from deconv_ir.ir.graph import Layer


def complete_layers(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a layer of the model on the command line."""
    return _items(((layer.name, layer.type) for layer in _layers(context)), incomplete)


def complete_tensors(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a layer or of a tensor."""
    named: list[tuple[str, str]] = []
    for layer in _layers(context):
        named.append((layer.name, layer.type))
        named += [(name, f"tensor of {layer.type}") for p in layer.outputs for name in p.names]
    return _items(named, incomplete)


def complete_rule(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the code or the name of a rule."""
    from deconv_ir.linter.catalogue import RULES

    rules = list(RULES.values())
    named = [(rule.code, f"{rule.name}: {rule.title}") for rule in rules]
    return _items([*named, *((rule.name, rule.title) for rule in rules)], incomplete)


def complete_rules(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the last of several rules separated by commas, or a family."""
    from deconv_ir.linter.rule import FAMILIES

    before, comma, last = incomplete.rpartition(",")
    items = complete_rule(context, parameter, last)
    items += _items([(family, "family of rules") for family in FAMILIES.values()], last)
    for item in items:
        item.value = f"{before}{comma}{item.value}"
    return items


def _items(named: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    # A shell reads one line for each name: names with line ends are left out.
    return [
        CompletionItem(name, help=text)
        for name, text in dict(named).items()
        if name.startswith(incomplete) and name.isprintable()
    ]


def _layers(context: click.Context) -> tuple[Layer, ...]:
    """Return the layers of the model on the command line, if it can be read."""
    path = context.params.get("model")
    if not isinstance(path, str) or path == STREAM:
        return ()
    from deconv_ir.formats.reading import read_model
    from deconv_ir.limits import DEFAULT_LIMITS

    with contextlib.suppress(DeconvError, OSError, MemoryError):
        graph, _ = read_model(path, DEFAULT_LIMITS)
        return () if graph is None else graph.layers
    return ()
