"""Extraction of some operations of a oneDNN Graph file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from deconv_ir.errors import InputError, IRError
from deconv_ir.formats.exchange import Extract, Written
from deconv_ir.formats.files import output_errors, read_input, replace_file
from deconv_ir.formats.onednn_json.parsed import ParsedJSON
from deconv_ir.formats.onednn_json.reader import parse_bytes
from deconv_ir.limits import DEFAULT_LIMITS


def write_part(part: Extract, path: Path) -> Written:
    """Write operations of a oneDNN Graph file as another; see `Format.cut`."""
    if part.source is None or part.graph.format != ParsedJSON.format:
        raise InputError(f"{path}: only a part of a oneDNN Graph file can be a .json file")
    layers = part.graph.layers
    inputs = [layer.outputs[0].names[0] for layer in layers if layer.type == "Parameter"]
    data = read_input(part.source, DEFAULT_LIMITS.xml_bytes, "the model", IRError)
    text = part_of_file(data, {layer.id for layer in layers}, inputs, part.outputs)
    with output_errors(path, "the part"), replace_file(path) as stream:
        stream.write(text.encode())
    return Written()


def part_of_file(
    data: bytes,
    operations: set[int],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> str:
    """Return the text of a file with some operations of another file, unchanged.

    Parameters
    ----------
    data : bytes
        The file to read.
    operations : set of int
        Ids of the operations.
    inputs, outputs : sequence of str
        The tensors that become ports.
    """
    parsed = parse_bytes(data)
    assert parsed.file_text is not None, "the file was read before"
    assert parsed.graph is not None, "the file was read before"
    settings = dict(parsed.graph.extras[0].attributes)
    ports = {"input_ports": list(map(int, inputs)), "output_ports": list(map(int, outputs))}
    members = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in settings.items()]
    members += [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in ports.items()]
    kept = sorted(
        stated.node.span
        for layer, stated in zip(parsed.graph.layers, parsed.stated, strict=True)
        if layer.id in operations and layer.type not in ("Parameter", "Result")
    )
    text = ",\n    ".join(parsed.file_text.text[start:end] for start, end in kept)
    members.append(f'"graph": [\n    {text}\n  ]')
    return "{\n  " + ",\n  ".join(members) + "\n}\n"
