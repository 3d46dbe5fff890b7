"""Seeded mistakes: one change to one declared dim, attribute, edge, offset or type of an IR."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Mutation(NamedTuple):
    """One change.

    Attributes
    ----------
    kind : str
        The kind of the change.
    text : str
        The whole changed file.
    line : int
        Line of the change.
    was, now : str
        The text before and after the change.
    """

    kind: str
    text: str
    line: int
    was: str
    now: str


TYPES = ("f32", "f16", "i32", "i64", "u8")
PRECISIONS = ("FP32", "FP16", "I32", "I64", "U8")
LAYERS = ("ReLU", "Add", "Multiply", "Convert", "Reshape", "Result", "ShapeOf", "Concat", "Relu6")
_NUMBER = re.compile(r"-?\d+")


def other(choices: random.Random, values: tuple[str, ...] | list[str], than: str) -> str:
    """Choose another item."""
    return choices.choice([v for v in values if v != than])


def near(choices: random.Random, number: int) -> str:
    """Choose another number, mostly a plausible one."""
    likely = [number + 1, number - 1, 2 * number, number + 7, 0, 1, -1]
    return other(choices, [str(n) for n in likely], str(number))


def places(text: str, pattern: str) -> list[re.Match[str]]:
    return list(re.finditer(pattern, text))


def replaced(
    kind: str, text: str, start: int, end: int, now: str, *, at: int | None = None
) -> Mutation:
    line = text.count("\n", 0, start if at is None else at) + 1
    return Mutation(kind, text[:start] + now + text[end:], line, text[start:end], now)


def change_dim(choices: random.Random, text: str) -> Mutation:
    """Replace the number of a declared dim."""
    match = choices.choice(places(text, r"<dim>(-?\d+)</dim>"))
    return replaced("dim", text, *match.span(1), near(choices, int(match[1])))


def remove_dim(choices: random.Random, text: str) -> Mutation:
    """Remove a declared dim and its line."""
    match = choices.choice(places(text, r"[ \t]*<dim>-?\d+</dim>\n"))
    return replaced("rank", text, *match.span(), "")


def add_dim(choices: random.Random, text: str) -> Mutation:
    """Repeat a declared dim."""
    match = choices.choice(places(text, r"[ \t]*<dim>-?\d+</dim>\n"))
    return replaced("rank", text, match.end(), match.end(), match[0], at=match.start())


def data_attributes(text: str, pattern: str) -> Iterator[tuple[re.Match[str], int]]:
    """Iterate over the attributes of all ``<data>`` elements whose names match."""
    for data in re.finditer(r"<data ([^>]*)/>", text):
        for match in re.finditer(rf'({pattern})="([^"]*)" ?', data[1]):
            yield match, data.start(1)


def change_attribute(choices: random.Random, text: str) -> Mutation:
    """Change the value of an attribute."""
    names = (
        "strides|dilations|pads_begin|pads_end|output_padding|auto_pad|auto_broadcast"
        r"|special_zero|batch_dims|axis|shape|\w+_mask"
    )
    match, base = choices.choice(list(data_attributes(text, names)))
    value = match[2]
    numbers = places(value, r"-?\d+")
    if match[1] == "auto_pad":
        now = other(choices, ["explicit", "same_upper", "same_lower", "valid", "same"], value)
    elif match[1] == "auto_broadcast":
        now = other(choices, ["none", "numpy", "nmpy"], value)
    elif match[1] == "special_zero":
        now = other(choices, ["true", "false", "maybe"], value)
    elif numbers and choices.random() < 0.7:
        number = choices.choice(numbers)
        changed = near(choices, int(number[0]))
        now = value[: number.start()] + changed + value[number.end() :]
    elif value and choices.random() < 0.5:
        now = other(choices, [f"{value}, 1", value.replace("1", "one"), value[:-1], "x"], value)
    else:
        now = other(choices, ["1", "2, 2", "0", "2.5"], value)
    return replaced("attribute", text, base + match.start(2), base + match.end(2), now)


def remove_attribute(choices: random.Random, text: str) -> Mutation:
    """Remove an attribute."""
    match, base = choices.choice(list(data_attributes(text, r"[\w.]+")))
    return replaced("attribute", text, base + match.start(), base + match.end(), "")


def misspell_attribute(choices: random.Random, text: str) -> Mutation:
    """Leave a letter out of an attribute's name."""
    match, base = choices.choice(list(data_attributes(text, r"[\w.]+")))
    drop = choices.randrange(len(match[1]))
    now = match[1][:drop] + match[1][drop + 1 :]
    return replaced("attribute", text, base + match.start(1), base + match.end(1), now)


def change_edge(choices: random.Random, text: str) -> Mutation:
    """Connect one end of an edge to another layer or port."""
    match = choices.choice(places(text, r'(?:from|to)-(?:layer|port)="(\d+)"'))
    layers = [str(n) for n in range(len(places(text, "<layer ")) + 2)]
    ports = ["0", "1", "2", "3"]
    now = other(choices, layers if "layer" in match[0] else ports, match[1])
    return replaced("edge", text, *match.span(1), now)


def remove_edge(choices: random.Random, text: str) -> Mutation:
    """Remove an edge."""
    match = choices.choice(places(text, r"[ \t]*<edge [^>]*>\n"))
    return replaced("edge", text, *match.span(), "")


def repeat_edge(choices: random.Random, text: str) -> Mutation:
    """Repeat an edge."""
    match = choices.choice(places(text, r"[ \t]*<edge [^>]*>\n"))
    return replaced("edge", text, match.end(), match.end(), match[0])


def change_offset(choices: random.Random, text: str) -> Mutation:
    """Change the offset or the size of a constant."""
    match, base = choices.choice(list(data_attributes(text, "offset|size")))
    number = int(match[2])
    likely = [number + 4, number - 4, number + 1, number - 1, number * 2 + 8, 10**9, 0]
    now = other(choices, [str(n) for n in likely], match[2])
    return replaced("offset", text, base + match.start(2), base + match.end(2), now)


def change_type(choices: random.Random, text: str) -> Mutation:
    """Change the element type in an attribute."""
    names = "element_type|destination_type|output_type"
    match, base = choices.choice(list(data_attributes(text, names)))
    now = other(choices, (*TYPES, "float"), match[2])
    return replaced("type", text, base + match.start(2), base + match.end(2), now)


def change_precision(choices: random.Random, text: str) -> Mutation:
    """Change the precision of a port."""
    match = choices.choice(places(text, r'precision="(\w+)"'))
    now = other(choices, (*PRECISIONS, "FLOAT"), match[1])
    return replaced("precision", text, *match.span(1), now)


def change_layer(choices: random.Random, text: str) -> Mutation:
    """Change the type or the version of a layer."""
    match = choices.choice(places(text, r' (?:type|version)="([A-Za-z]\w*)"'))
    versions = ("opset0", "opset1", "opset8", "opset99", "opsat1")
    values = versions if match[1].startswith("ops") else LAYERS
    return replaced("layer", text, *match.span(1), other(choices, values, match[1]))


def change_id(choices: random.Random, text: str) -> Mutation:
    """Change the id of a layer or a port."""
    match = choices.choice(places(text, r'<(?:layer|port) id="(\d+)"'))
    return replaced("id", text, *match.span(1), near(choices, int(match[1])))


MUTATORS: tuple[Callable[[random.Random, str], Mutation], ...] = (
    change_dim,
    change_dim,
    change_dim,
    remove_dim,
    add_dim,
    change_attribute,
    change_attribute,
    change_attribute,
    remove_attribute,
    misspell_attribute,
    change_edge,
    change_edge,
    remove_edge,
    repeat_edge,
    change_offset,
    change_type,
    change_precision,
    change_layer,
    change_id,
)


def change_tag(choices: random.Random, text: str) -> Mutation:
    """Remove an attribute of a layer or a port, or empty it."""
    match = choices.choice(places(text, r' (id|name|type|version|precision)="([^"]*)"'))
    if choices.random() < 0.7:
        return replaced("form", text, *match.span(), "")
    return replaced("form", text, *match.span(2), "")


def odd_dim(choices: random.Random, text: str) -> Mutation:
    """Write a dim in a form that readers may not accept."""
    match = choices.choice(places(text, r"<dim>(-?\d+)</dim>"))
    now = choices.choice(["?", "", "x", f"{match[1]}.0", f" {match[1]} ", "1..8", "-2", "1e1"])
    return replaced("form", text, *match.span(1), now)


def odd_value(choices: random.Random, text: str) -> Mutation:
    """Write the value of an attribute in a form that readers may not accept."""
    match, base = choices.choice(list(data_attributes(text, r"[\w.-]+")))
    value = match[2]
    odd = ["", "abc", f"{value} ", f" {value}", value.upper(), value.title(), f"{value}s", "0"]
    odd += [value[:-1], f"{value},1", "-1", value.replace(",", ";"), f"FP{value[1:]}", "none"]
    now = other(choices, odd, value)
    return replaced("value", text, base + match.start(2), base + match.end(2), now)


FORMS = (change_tag, odd_dim, odd_value, odd_value, odd_value, remove_attribute)
"""Changes of the form of a file, on which readers differ."""


def change_port_map(choices: random.Random, text: str) -> Mutation:
    """Change an attribute of a port map entry or of a back edge."""
    pattern = r'<(?:input|output|edge) (?:axis|external_port_id|from-layer="\d+" to-layer)[^>]*>'
    entry = choices.choice(places(text, pattern))
    match = choices.choice(places(entry[0], r'([\w-]+)="([^"]*)"'))
    now = near(choices, int(match[2])) if _NUMBER.fullmatch(match[2]) else ""
    start, end = (entry.start() + at for at in match.span(2))
    return replaced("port map", text, start, end, now)


def remove_port_map(choices: random.Random, text: str) -> Mutation:
    """Remove an entry of a port map, or a back edge."""
    entry = r"[ \t]*<(?:input|output) (?:axis|external_port_id)[^>]*>\n"
    edge = r'[ \t]*<edge from-layer="\d+" to-layer="\d+" />\n'
    match = choices.choice(places(text, f"{entry}|{edge}"))
    return replaced("port map", text, *match.span(), "")


BODIES = (*MUTATORS, *[change_port_map] * 4, remove_port_map)
"""Changes of layers that have bodies."""


def change_number(choices: random.Random, text: str) -> Mutation:
    """Change a number in an attribute of an operation."""
    found = [
        (number, base + match.start(2) + number.start())
        for match, base in data_attributes(text, r"[\w.-]+")
        if match[1] not in ("shape", "offset", "size")
        for number in places(match[2], r"(?<![\w.])-?\d+(?![\w.])")
    ]
    if not found:
        return odd_value(choices, text)
    number, start = choices.choice(found)
    now = near(choices, int(number[0]))
    return replaced("value", text, start, start + len(number[0]), now)


OPERATIONS = (
    *[change_dim] * 3,
    remove_dim,
    *[odd_value] * 3,
    *[change_number] * 2,
    remove_attribute,
    misspell_attribute,
    change_edge,
    change_precision,
)
"""Changes of a file of one operation."""


def mutate(choices: random.Random, text: str) -> Mutation:
    """Apply one random mutation."""
    return choices.choice(MUTATORS)(choices, text)


def flip_boolean(choices: random.Random, text: str) -> Mutation:
    """Exchange true and false."""
    match = choices.choice(places(text, r'="(true|false)"'))
    return replaced("boolean", text, *match.span(1), "false" if match[1] == "true" else "true")


def change_word(choices: random.Random, text: str) -> Mutation:
    """Exchange a word for another one that its attribute has."""
    words = {
        "auto_pad": "explicit same_upper same_lower valid",
        "rounding_type": "floor ceil",
        "pad_mode": "edge reflect symmetric constant",
        "mode": "nearest linear linear_onnx cubic",
        "coordinate_transformation_mode": "half_pixel asymmetric align_corners",
        "shape_calculation_mode": "sizes scales",
        "auto_broadcast": "numpy none",
    }
    found = places(text, rf'\b({"|".join(words)})="([a-z_]+)"')
    match = choices.choice(found)
    return replaced("word", text, *match.span(2), other(choices, words[match[1]].split(), match[2]))


def exchange_numbers(choices: random.Random, text: str) -> Mutation:
    """Exchange two numbers of a list."""
    match = choices.choice(places(text, r'="(\d+), ?(\d+)((?:, ?\d+)*)"'))
    return replaced("list", text, match.start(), match.end(), f'="{match[2]},{match[1]}{match[3]}"')


def exchange_edges(choices: random.Random, text: str) -> Mutation:
    """Exchange the sources of two edges."""
    edges = places(text, r'from-layer="\d+" from-port="\d+"')
    a, b = sorted(choices.sample(edges, 2), key=lambda match: match.start())
    now = text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]
    return Mutation("edges", now, text.count("\n", 0, a.start()) + 1, a[0], b[0])


def change_both_ends(choices: random.Random, text: str) -> Mutation:
    """Change a declared dim at both ends of an edge."""
    edge = choices.choice(
        places(text, r'from-layer="(\d+)" from-port="(\d+)" to-layer="(\d+)" to-port="(\d+)"')
    )
    spots = []
    for layer, side, port in ((edge[1], "output", edge[2]), (edge[3], "input", edge[4])):
        start = text.index(f'<layer id="{layer}"')
        end = text.index("</layer>", start)
        at = text.index(f'<port id="{port}"', text.index(f"<{side}>", start, end), end)
        dims = re.compile(r"<dim>(\d+)</dim>").finditer(text, at, text.index("</port>", at))
        spots.append(list(dims))
    axis = choices.randrange(min(map(len, spots)))
    now = near(choices, int(spots[0][axis][1]))
    for match in sorted((s[axis] for s in spots), key=lambda m: -m.start()):
        text = f"{text[: match.start(1)]}{now}{text[match.end(1) :]}"
    line = text.count("\n", 0, spots[0][axis].start()) + 1
    return Mutation("ends", text, line, spots[0][axis][1], now)


SILENT = (
    flip_boolean,
    change_word,
    exchange_numbers,
    exchange_edges,
    change_both_ends,
)
"""Changes that leave a well-formed file, whose results may differ."""
