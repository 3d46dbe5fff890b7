"""Load, lint and run mutated IRs; see `runner`.

Mutations follow the structure of IRs: attributes, dims, edges, layers and the
bytes of constants are changed, removed, copied and exchanged, so that most of
the files get past the XML parser.

    python tests/hostile/mutate.py --count 100000 --seed 0

prints the figures of docs/reliability.md.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.runner import IRMaker, main
from hostile.seeds import Seed, seeds

MAX_TEXT = 1 << 16

INTEGERS = (
    *("0", "1", "2", "3", "4", "5", "7", "8", "-1", "-2", "16", "255", "256", "65537"),
    *("1000000000", "2147483647", "2147483648", "-2147483648", "4294967296"),
    *("4611686018427387904", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "18446744073709551616", "99999999999999999999999", "1" * 5000),
)
WORDS = (
    *("", " ", "?", "...", "-", "--1", "+1", "1.5", "1e9", "nan", "inf", "-inf", "0x10", "1_0"),
    *("true", "false", "f32", "f16", "bf16", "i4", "u1", "nf4", "i64", "boolean", "dynamic"),
    *("string", "explicit", "valid", "same_upper", "same_lower", "None", "NXC", "XIO", "IOX"),
    *("1..", "..5", "1..8", "8..1", "\u0661", "\u00e9", "&#0;", "&#x10FFFF;", "&lt;", "\t", "\n"),
    *("numpy", "pytorch", "bidirectional", "../../etc/passwd", "/dev/zero", "1,,2", ",", "1;2"),
)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_DIM = re.compile(r"<dim>([^<]*)</dim>")
_LAYER = re.compile(r"<layer .*?</layer>\s*", re.DOTALL)
_EDGE = re.compile(r"<edge [^>]*/>\s*")
_PORT = re.compile(r"<port [^>]*?(?:/>|>.*?</port>)\s*", re.DOTALL)
_TYPE = re.compile(r'type="([^"]*)" version="([^"]*)"')


class Mutator(IRMaker):
    """Mutate IRs by a seed and a number; equal seeds and numbers give equal IRs."""

    def __init__(self) -> None:
        self.seeds = seeds()
        self.types = sorted({m for s in self.seeds for m in _TYPE.findall(s.xml.decode())})
        self.values = sorted(
            {value for s in self.seeds for _, value in _ATTRIBUTE.findall(s.xml.decode())}
        )

    def make(self, seed: int, number: int) -> Seed:
        """Return the IR with a number."""
        draw = random.Random(f"{seed}/{number}")
        start = draw.choice(self.seeds)
        text, weights = start.xml.decode(), bytearray(start.weights)
        for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 5, 8))):
            text = draw.choices(_TEXT_MUTATIONS, _WEIGHTS)[0](self, draw, text)
            if weights and draw.random() < 0.2:
                _mutate_weights(draw, weights)
            if len(text) > MAX_TEXT:
                break
        data = text.encode("utf-8", "surrogatepass")
        if draw.random() < 0.05:
            data = _mutate_bytes(draw, data)
        return Seed(start.name, data, bytes(weights))

    def value(self, draw: random.Random, old: str) -> str:
        """Return a value that replaces another."""
        kind = draw.random()
        if "," in old and kind < 0.5:
            parts = old.split(",")
            place = draw.randrange(len(parts))
            change = draw.random()
            if change < 0.6:
                parts[place] = draw.choice(INTEGERS)
            elif change < 0.75:
                parts.insert(place, draw.choice(INTEGERS))
            elif change < 0.9:
                del parts[place]
            else:
                parts *= draw.choice((2, 20, 2000))
            return ",".join(parts)
        if kind < 0.55:
            return draw.choice(INTEGERS)
        if kind < 0.7:
            return draw.choice(WORDS)
        if kind < 0.9:
            return draw.choice(self.values)
        return ",".join(draw.choice(INTEGERS) for _ in range(draw.choice((1, 2, 3, 4, 9))))


def _attribute(mutator: Mutator, draw: random.Random, text: str) -> str:
    matches = list(_ATTRIBUTE.finditer(text))
    if not matches:
        return text
    match = draw.choice(matches)
    change = draw.random()
    if change < 0.8:
        start, end, new = *match.span(2), mutator.value(draw, match[2])
    elif change < 0.9:
        start, end, new = *match.span(), ""
    else:
        start, end, new = *match.span(1), draw.choice(matches)[1]
    return text[:start] + new + text[end:]


def _data(mutator: Mutator, draw: random.Random, text: str) -> str:
    """Change an attribute of a <data> element, which holds an operation's attributes."""
    places = list(re.finditer(r"<data [^>]*>", text))
    if not places:
        return _attribute(mutator, draw, text)
    place = draw.choice(places)
    return text[: place.start()] + _attribute(mutator, draw, place[0]) + text[place.end() :]


def _dim(mutator: Mutator, draw: random.Random, text: str) -> str:
    matches = list(_DIM.finditer(text))
    if not matches:
        return text
    match = draw.choice(matches)
    change = draw.random()
    if change < 0.6:
        new = f"<dim>{mutator.value(draw, match[1])}</dim>"
    else:
        new = draw.choice(("", match[0] * 2, match[0] * 70, "<dim/>", "<dim><dim>1</dim></dim>"))
    return text[: match.start()] + new + text[match.end() :]


def _element(pattern: re.Pattern[str]) -> Callable[[Mutator, random.Random, str], str]:
    """Remove, copy, exchange or wrap elements of one kind."""

    def mutate(mutator: Mutator, draw: random.Random, text: str) -> str:
        matches = list(pattern.finditer(text))
        if not matches:
            return text
        match, other = draw.choice(matches), draw.choice(matches)
        new = draw.choice(
            ("", match[0] * 2, other[0], f"<x>{match[0]}</x>", match[0] * 40, f"<!--{other[0]}-->")
        )
        return text[: match.start()] + new + text[match.end() :]

    return mutate


def _layer_type(mutator: Mutator, draw: random.Random, text: str) -> str:
    matches = list(_TYPE.finditer(text))
    if not matches:
        return text
    match = draw.choice(matches)
    kind, version = draw.choice(mutator.types)
    return f'{text[: match.start()]}type="{kind}" version="{version}"{text[match.end() :]}'


def _characters(mutator: Mutator, draw: random.Random, text: str) -> str:
    at = draw.randrange(len(text) + 1)
    change = draw.random()
    if change < 0.3:
        return text[:at]
    if change < 0.6:
        return text[:at] + text[at + draw.choice((1, 2, 10, 100)) :]
    new = draw.choice(
        (
            "<",
            ">",
            "&",
            '"',
            "]]>",
            "<![CDATA[",
            "<!--",
            "-->",
            "<?x?>",
            "<a>",
            "</a>",
            "\0",
            "<a/>",
        )
    )
    return text[:at] + new + text[at:]


def _mutate_weights(draw: random.Random, weights: bytearray) -> None:
    change = draw.random()
    if change < 0.3:
        del weights[draw.randrange(len(weights)) :]
    elif change < 0.6:
        value = int(draw.choice(INTEGERS[:-1])) & (2**64 - 1)
        at = draw.randrange(len(weights)) // 8 * 8
        weights[at : at + 8] = value.to_bytes(8, "little")
    else:
        for _ in range(draw.choice((1, 4, 32))):
            weights[draw.randrange(len(weights))] = draw.randrange(256)
    if not weights:
        weights += b"\0"


def _mutate_bytes(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data or b" ")
    change = draw.random()
    if change < 0.3:
        return data.decode("utf-8", "replace").encode(draw.choice(("utf-16", "utf-32", "utf-7")))
    for _ in range(draw.choice((1, 3, 30))):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


_TEXT_MUTATIONS: Sequence[Callable[[Mutator, random.Random, str], str]] = (
    _attribute,
    _data,
    _dim,
    _element(_LAYER),
    _element(_EDGE),
    _element(_PORT),
    _layer_type,
    _characters,
)
_WEIGHTS = (25, 30, 12, 6, 6, 6, 10, 5)


if __name__ == "__main__":
    sys.exit(main(Mutator, __doc__))
