"""The commands deconv-diff and deconv-cut, as a user sees them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from edited import Edit, build
from support import invoke_script

import deconv_ir


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("original"))


@pytest.fixture
def broken(original: Path, tmp_path: Path) -> Path:
    edit = Edit(original)
    edit.set("up", pads_begin="0,0", pads_end="2,2")
    return edit.save(tmp_path / "broken.xml")


def test_equal(original: Path) -> None:
    done = invoke_script("diff", original, original)
    assert done.exit_code == 0
    assert "The structure is equal." in done.output


def test_structure(original: Path, broken: Path) -> None:
    done = invoke_script("diff", original, broken)
    assert done.exit_code == 1
    assert "     2 attribute" in done.output
    assert "'up' (ConvolutionBackpropData, id 16): pads_begin: 1,1 in A, 0,0 in B" in done.output


def test_behaviour(original: Path, broken: Path) -> None:
    done = invoke_script("diff", original, broken, "--random-inputs", 0)
    assert done.exit_code == 1
    assert "7 of 14 tensors are out of tolerance." in done.output
    assert "The error appears first in 'up' (ConvolutionBackpropData, id 16)" in done.output
    assert "2*(12 - 1) + ((4 - 1)*1 + 1) - 1 - 1 + 0 = 24" in done.output


def test_many_alike_are_one_line(original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    for name in ("enc/w", "enc/b", "mid/w", "up/w", "scale/c", "mid/bn/g"):
        edit.replace(name, edit.array(name).astype(np.float16), "f16")
        edit.layer(name).find("output/port").set("precision", "FP16")
        edit.layer(name).set("name", f"{name}_compressed")
        edit.insert("Convert", name, f"{name}_compressed", destination_type="f32")
    done = invoke_script("diff", original, edit.save(tmp_path / "f16.xml"))
    (line,) = (x for x in done.output.splitlines() if x.startswith("weights:"))
    assert "stored as f32 in A, f16 in B, equal after conversion to f16" in line
    assert line.endswith("and 1 more layers")


def test_json(original: Path, broken: Path) -> None:
    options = ("--random-inputs", 0, "--format", "json")
    done = invoke_script("diff", original, broken, *options)
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["equal"] is False
    assert [d["message"] for d in found["differences"]] == ["pads_begin", "pads_end"]
    assert found["culprit"]["tensor"]["name"] == "up"
    assert len(found["tensors"]) == 14


def test_hostile_names_are_escaped(original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    edit.layer("up").set("name", "up\u202e\x85")
    done = invoke_script("diff", original, edit.save(tmp_path / "b.xml"))
    assert "\u202e" not in done.output
    assert "\x85" not in done.output


def test_dumps(original: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    for name, array in deconv_ir.load(original).run(x, outputs=["mid/bn", "up", "soft"]).items():
        np.save(dumps / f"{name.replace('/', '_')}.npy", array + (name != "mid/bn"))
    done = invoke_script("diff", original, "--input", tmp_path / "x.npy", "--against", dumps)
    assert done.exit_code == 1
    assert "The error appears first in 'up'" in done.output


TOOL = """
import sys, numpy as np, deconv_ir
model, inputs, outputs = sys.argv[1:]
found = deconv_ir.load(model, warn=False).run(dict(np.load(inputs)))
np.savez(outputs, **{name: array * (1.01 if name == "elu" else 1) for name, array in found.items()})
"""


def test_bisection_with_a_command(original: Path, tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text(TOOL)
    command = f"{sys.executable} {tmp_path / 'tool.py'} {{model}} {{inputs}} {{outputs}}"
    options = ("--random-inputs", 0, "--bisect", "--command", command)
    # Only a cut right behind the layer shows the layer's error: the final output agrees.
    assert invoke_script("diff", original, *options).exit_code == 0
    invoke_script("cut", original, "--to", "elu", "--output", tmp_path / "part.xml")
    done = invoke_script("diff", tmp_path / "part.xml", *options)
    assert done.exit_code == 1
    assert "The error appears first in 'elu'" in done.output


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("tool {model} {inputs}", "{outputs} is missing"),
        ("tool 'x {model} {inputs} {outputs}", "quotation"),
        ("no-such-tool {model} {inputs} {outputs}", "No such file"),
        ("false {model} {inputs} {outputs}", "exit code 1"),
        ("true {model} {inputs} {outputs}", "wrote no {outputs}"),
    ],
)
def test_tools_that_do_not_work(original: Path, command: str, words: str) -> None:
    options = ("--random-inputs", 0, "--bisect", "--command", command)
    done = invoke_script("diff", original, *options)
    assert done.exit_code == 2
    assert words in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a second model"),
        (("B", "--plot", "e.png"), "use --input FILE, or --random-inputs SEED"),
        (("B", "--against", "openvino"), "use --input FILE, or --random-inputs SEED"),
        (("B", "--ignore", "colour"), "no aspect 'colour'"),
        (("B", "--command", "tool"), "--command requires --bisect"),
        (("B", "--bisect"), "takes no second model"),
        (("--bisect", "--random-inputs", "0"), "requires --command"),
        (("--bisect", "--command", "{model} {inputs} {outputs}"), "use --input FILE"),
        (("--against", "nowhere", "--random-inputs", "0"), "nor a folder of .npy files"),
        (("B", "--random-inputs", "0", "--plot", "e.txt"), "must end with .png or .svg"),
    ],
)
def test_options_that_do_not_fit(original: Path, arguments: tuple[str, ...], words: str) -> None:
    done = invoke_script("diff", original, *(str(original) if a == "B" else a for a in arguments))
    assert done.exit_code == 2
    assert words in done.output


def test_plot(original: Path, broken: Path, tmp_path: Path) -> None:
    options = ("--random-inputs", 0, "--plot", tmp_path / "error.png")
    invoke_script("diff", original, broken, *options)
    assert (tmp_path / "error.png").read_bytes().startswith(b"\x89PNG")
    done = invoke_script("diff", original, broken, *options)
    assert done.exit_code == 2
    assert "the file exists (use --force)" in done.output
    done = invoke_script("diff", original, original, *options, "--force")
    assert done.exit_code == 0, done.output


def test_cut(original: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.xml"
    done = invoke_script("cut", original, "--from", "skip", "--to", "pool", "--output", part)
    assert done.exit_code == 0
    assert "5 layers, 4096 bytes of weights; from skip: f32[1,8,12,12] to pool" in done.output
    command = done.output.splitlines()[-1].split()
    assert command == ["deconv-run", str(part), "--random-inputs", "0"]
    assert invoke_script("run", *command[1:], "--no-output").exit_code == 0


def test_cut_never_overwrites_what_it_reads(original: Path, tmp_path: Path) -> None:
    before = original.read_bytes(), original.with_suffix(".bin").read_bytes()
    done = invoke_script("cut", original, "--to", "up", "--output", original, "--force")
    assert done.exit_code == 2
    assert "would overwrite the model" in done.output
    assert (original.read_bytes(), original.with_suffix(".bin").read_bytes()) == before
    (tmp_path / "part.bin").write_bytes(b"mine")
    done = invoke_script("cut", original, "--to", "up", "--output", tmp_path / "part.xml")
    assert done.exit_code == 2
    assert (tmp_path / "part.bin").read_bytes() == b"mine"
