"""The report of deconv-diff."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.drawing.text import cut
from deconv_ir.errors import MAX_NAME, one_line

from ..shared.common import to_json
from ..shared.tables import print_table

if TYPE_CHECKING:
    from deconv_ir import (
        Culprit,
        Difference,
        ModelDifference,
        ModelVerdict,
        SideVerdict,
        TensorDifference,
    )

_LISTED = 5
"""Maximum number of listed layers with the same difference."""
_AROUND = 4
"""Number of listed tensors before and after the first one that differs."""


def print_text(found: ModelDifference, *, verbose: bool, rtol: float) -> None:
    """Print the verdict, a summary by aspect, then the details."""
    if found.verdict is not None:
        click.echo(one_line(found.verdict.sentence))
        for note in found.verdict.notes:
            click.echo(one_line(note))
        click.echo()
    for line in _lines(found, verbose):
        click.echo(line)
    for reason, names in _by_reason(found.unmatched).items():
        listed = ", ".join(one_line(name, 80) for name in (names if verbose else names[:_LISTED]))
        more = "" if verbose or len(names) <= _LISTED else f" and {len(names) - _LISTED} more"
        click.echo(f"Not compared, since {reason}: {listed}{more}")
    if found.tensors:
        click.echo()
        _print_tensors(found, verbose, rtol)
    if found.verdict is not None:
        click.echo()
        _print_verdict(found.verdict, verbose)
    if found.conditions:
        click.echo()
        for failure in found.failures:
            click.echo(one_line(str(failure)))
        if not found.failures:
            click.echo("No output meets a condition of --fail-if.")


def _lines(found: ModelDifference, verbose: bool) -> Iterator[str]:
    yield f"A  {one_line(found.a)}: {found.layers[0]} layers"
    if found.layers[1]:
        yield f"B  {one_line(found.b)}: {found.layers[1]} layers, {found.matched} in common"
    else:
        yield f"B  {one_line(found.b)}"
    if not found.differences:
        if found.layers[1]:
            yield "The structure is equal."
        return
    yield ""
    counts: dict[str, int] = {}
    for difference in found.differences:
        counts[difference.aspect.value] = counts.get(difference.aspect.value, 0) + 1
    for aspect, count in counts.items():
        yield f"{count:6d} {aspect}"
    yield ""
    groups: dict[tuple[str, ...], list[Difference]] = {}
    for difference in found.differences:
        key = (difference.aspect.value, difference.message, difference.a, difference.b)
        groups.setdefault(key, []).append(difference)
    for (aspect, *_), group in groups.items():
        if len(group) <= _LISTED or verbose:
            yield from (f"{aspect}: {_place(d)}{one_line(str(d))}" for d in group)
        else:
            names = ", ".join(one_line(d.layer, 80) for d in group[:_LISTED])
            more = len(group) - _LISTED
            alike = one_line(str(group[0]._replace(layer="")))
            yield f"{aspect}: {alike}: {names} and {more} more layers"


def _by_reason(unmatched: Mapping[str, str]) -> dict[str, list[str]]:
    """Group names of arrays that were not compared by the reason."""
    groups: dict[str, list[str]] = {}
    for name, reason in unmatched.items():
        groups.setdefault(one_line(reason), []).append(name)
    return groups


def _place(difference: Difference) -> str:
    """Return the lines in the two files."""
    lines = [
        f"{side}:{line}"
        for side, line in (("A", difference.line_a), ("B", difference.line_b))
        if line is not None
    ]
    return f"{' '.join(lines)}: " if lines else ""


def _print_tensors(found: ModelDifference, verbose: bool, rtol: float) -> None:
    tensors = found.tensors
    wrong = [k for k, tensor in enumerate(tensors) if not tensor.within]
    if not wrong:
        _print_agreement(tensors, rtol, verbose)
        return
    shown: Sequence[int] = range(len(tensors))
    if not verbose and len(tensors) > 4 * _AROUND:
        near = range(max(0, wrong[0] - _AROUND), min(len(tensors), wrong[0] + _AROUND + 1))
        shown = sorted({*near, *(k for k in range(len(tensors) - 2, len(tensors)))})
    rows = [
        ["" if t.within else "!", one_line(t.name, MAX_NAME), type_name, *_figures(t)]
        for t in (tensors[k] for k in shown)
        for type_name in [t.layer.rpartition("(")[2].partition(",")[0]]
    ]
    headers = [
        "",
        "tensor",
        "type",
        "largest error",
        "of scale",
        "RMS",
        "cosine",
        "out",
        "NaN, inf",
    ]
    omit = ("NaN, inf", "cosine", "RMS", "type", "largest error")
    print_table(rows, headers, ("left", "left", "left", *["right"] * 6), omit=omit)
    if len(shown) < len(tensors):
        click.echo(f"{len(tensors) - len(shown)} more tensors (-v lists all)")
    click.echo(f"\n{len(wrong)} of {len(tensors)} tensors are out of tolerance.")
    if found.stopped:
        click.echo(f"The following tensors could not be compared: {one_line(found.stopped)}")
    if found.culprit is not None:
        for line in _culprit(found.culprit):
            click.echo(line)


def _print_agreement(tensors: Sequence[TensorDifference], rtol: float, verbose: bool) -> None:
    by_levels = [t for t in tensors if t.note]
    exact = [t for t in tensors if not t.note]
    if exact:
        worst = max(exact, key=lambda t: t.relative)
        click.echo(
            f"{'1 tensor agrees' if len(exact) == 1 else f'{len(exact)} tensors agree'} "
            f"within {rtol:g} of the scale; the largest error is "
            f"{worst.relative:.2g} of it, in {one_line(worst.name, 80)!r}."
        )
    shown = by_levels if verbose else by_levels[:_LISTED]
    for tensor in shown:
        click.echo(f"{one_line(tensor.name, 80)!r} agrees by levels: {tensor.note}.")
    if len(shown) < len(by_levels):
        click.echo(f"{len(by_levels) - len(shown)} more agree by levels (-v lists all).")


def _print_verdict(verdict: ModelVerdict, verbose: bool) -> None:
    """Print the verdict layer by layer: first those that are wrong or make the difference."""
    layers = verdict.layers
    shown = list(range(len(layers)))
    if not verbose and len(layers) > 4 * _AROUND:
        first = verdict.first
        at = 0 if first is None else layers.index(first)
        near = range(max(0, at - _AROUND), min(len(layers), at + _AROUND + 1))
        largest = sorted(shown, key=lambda k: -layers[k].amplification)[:_AROUND]
        wrong = [k for k in shown if layers[k].wrong][: 2 * _AROUND]
        shown = sorted({*(near if first else ()), *largest, *wrong, len(layers) - 1})
    rows = [
        [
            one_line(layers[k].name, MAX_NAME),
            layers[k].type,
            *_judged(layers[k].a),
            *_judged(layers[k].b),
            f"{layers[k].difference:.2g}",
            f"{layers[k].inherited:.2g}",
            f"{layers[k].amplification:.2g}" if layers[k].amplification else "",
        ]
        for k in shown
    ]
    a, b = (cut(one_line(name), 16) for name in verdict.sides)
    headers = ["tensor", "type", a, "local", b, "local ", "difference", "inherited", "amplified"]
    omit = ("type", "local", "local ", "amplified")
    print_table(rows, headers, ("left", "left", *["right"] * 7), omit=omit)
    if len(shown) < len(layers):
        click.echo(f"{len(layers) - len(shown)} more tensors (-v lists all)")


def _judged(side: SideVerdict) -> list[str]:
    """Return the verdict on a side and its local error."""
    local = "" if side.right is None else f"{side.local:.2g}"
    executed = f" {side.executed}" if side.executed else ""
    if side.right is None:
        return ["not judged", local]
    if side.right:
        return [(f"by {side.semantics}" if side.semantics else "right") + executed, local]
    times = f" by {side.times:.3g}" if side.times < math.inf else ""
    return [f"WRONG{times}{executed}", local]


def _figures(t: TensorDifference) -> list[str]:
    if not t.within and t.first is None:
        return [t.note, "", "", "", "", ""]
    special = ""
    if any((*t.nans, *t.infinities)):
        special = f"{t.nans[0]}|{t.nans[1]}, {t.infinities[0]}|{t.infinities[1]}"
    return [
        f"{t.largest:.3g}",
        f"{t.relative:.2g}",
        f"{t.rms:.2g}",
        f"{t.cosine:.6f}",
        str(t.outside or ""),
        special,
    ]


def _culprit(culprit: Culprit) -> Iterator[str]:
    tensor = culprit.tensor
    line = f", line {tensor.line}" if tensor.line is not None else ""
    yield f"\n{one_line(culprit.sentence(line))}"
    if tensor.first is not None:
        at = ",".join(map(str, tensor.first))
        yield f"  first element out of tolerance: [{at}]: {tensor.note}"
    elif tensor.note:
        yield f"  {tensor.note}"
    if culprit.hint:
        yield f"  {getattr(culprit.hint, 'command', culprit.hint)}"
    for given in culprit.inputs:
        yield f"  input {one_line(given)}"
    for name, value in culprit.attributes.items():
        yield f"  {one_line(name)}={one_line(value, 80)}"
    for formula in culprit.formulas:
        yield f"  {one_line(formula)}"
    if culprit.pads:
        yield f"  {one_line(culprit.pads)}"
    for difference in culprit.differences:
        yield f"  differs: {one_line(str(difference))}"


def print_json(found: ModelDifference) -> None:
    """Print everything as JSON."""
    document: dict[str, Any] = {
        "a": found.a,
        "b": found.b,
        "equal": found.equal,
        "layers": found.layers,
        "matched": found.matched,
        "differences": [d._asdict() | {"aspect": d.aspect.value} for d in found.differences],
        "tensors": [_finite(t._asdict()) for t in found.tensors],
        "culprit": None,
        "stopped": found.stopped,
        "unmatched": dict(found.unmatched),
        "verdict": None if found.verdict is None else _verdict_document(found.verdict),
        "conditions": list(map(str, found.conditions)),
        "failures": [
            _finite({"name": f.name, "condition": str(f.threshold), "value": f.value})
            for f in found.failures
        ],
    }
    if found.culprit is not None:
        document["culprit"] = found.culprit._asdict() | {
            "tensor": _finite(found.culprit.tensor._asdict()),
            "differences": [str(d) for d in found.culprit.differences],
        }
    click.echo(to_json(document), nl=False)


def _verdict_document(verdict: ModelVerdict) -> dict[str, Any]:
    """Return the verdict for JSON."""
    return {
        "sentence": verdict.sentence,
        "sides": verdict.sides,
        "wrong": verdict.wrong_sides,
        "notes": verdict.notes,
        "layers": [
            _finite(layer._asdict())
            | {
                "a": _finite(layer.a._asdict()),
                "b": _finite(layer.b._asdict()),
                "differences": [str(d) for d in layer.differences],
            }
            for layer in verdict.layers
        ],
        "settings": [
            {**setting._asdict(), "verdict": _finite(setting.verdict._asdict())}
            for setting in verdict.settings
        ],
    }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Return a figure for JSON, which has no infinity: None in that case."""
    return {
        name: None if isinstance(value, float) and value - value != 0 else value
        for name, value in values.items()
    }
