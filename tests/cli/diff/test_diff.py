"""The commands deconv-diff and deconv-cut, as a user sees them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from deconv_cli.diff.plots import label_of
from edited import Edit, build
from lxml import etree
from support import IR, invoke_script

import deconv_ir

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("original"))


@pytest.fixture
def broken(original: Path, tmp_path: Path) -> Path:
    edit = Edit(original)
    edit.set("up", pads_begin="0,0", pads_end="2,2")
    return edit.save(tmp_path / "broken.xml")


def test_equal_models_have_equal_structure(original: Path) -> None:
    done = invoke_script("diff", original, original)
    assert done.exit_code == 0
    assert "The structure is equal." in done.output


def test_structure(original: Path, broken: Path) -> None:
    done = invoke_script("diff", original, broken)
    assert done.exit_code == 1
    assert "     2 attribute" in done.output
    assert "'up' (ConvolutionBackpropData, id 16): pads_begin: 1,1 in A, 0,0 in B" in done.output


def test_the_first_tensor_that_differs_is_named(original: Path, broken: Path) -> None:
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


def test_many_layers_with_the_same_values_are_one_line(original: Path, tmp_path: Path) -> None:
    """OpenVINO marks layers that must stay in f32 after it has compressed a model."""
    edit = Edit(original)
    for layer in edit.root.iter("layer"):
        if layer.get("type") != "Const":
            note = etree.SubElement(etree.SubElement(layer, "rt_info"), "attribute")
            note.attrib.update({"name": "DisablePrecisionConversion", "version": "0"})
    done = invoke_script("diff", original, edit.save(tmp_path / "b.xml"))
    (line,) = (x for x in done.output.splitlines() if x.startswith("rt_info:"))
    assert "none in A, name=DisablePrecisionConversion version=0 in B" in line
    assert line.endswith("and 11 more layers")
    done = invoke_script("diff", original, tmp_path / "b.xml", "-v")
    assert sum(x.startswith("rt_info:") for x in done.output.splitlines()) == 16


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
    assert (
        "The error appears in or before 'up' (ConvolutionBackpropData, id 16), line" in done.output
    )
    assert ": nothing between 'x', 'mid/bn' and it was compared.\n" in done.output


COLLIDING = ("a/b", "a:b", "a_b", "A_b", "a b", ".ab", "ä" * 200, "ä" * 201, "plain")


@pytest.fixture
def colliding(tmp_path: Path) -> Path:
    """A chain of layers x + 1, x + 2, ... whose names differ only where file names cannot."""
    ir = IR()
    at = ir.parameter("x", "2")
    one = ir.const(np.ones(2, np.float32))
    for name in COLLIDING:
        at = ir.layer("Add", [at, one], name=name)
    ir.result(at, "y")
    return ir.save(tmp_path)


@pytest.mark.parametrize("together", [True, False])
def test_dumps_of_tensors_whose_names_collide(
    colliding: Path, tmp_path: Path, together: bool
) -> None:
    dumps = tmp_path / "dumps"
    for names in [COLLIDING] if together else [COLLIDING[:1], COLLIDING[1:5], COLLIDING[3:]]:
        wanted = [word for name in names for word in ("--output-layer", name)]
        done = invoke_script(
            "run", colliding, "--random-inputs", 0, *wanted, "--output", f"{dumps}/", "--force"
        )
        assert done.exit_code == 0, done.stderr
    assert len(list(dumps.glob("*.npy"))) == len(COLLIDING)
    entries = json.loads((dumps / "deconv-tensors.json").read_text())["tensors"]
    x = deconv_ir.load(colliding).run([np.zeros(2, np.float32)], outputs=COLLIDING)
    drawn = np.load(dumps / "a_b.npy") - 1
    for entry in entries:
        expected = drawn + x[entry["name"]]
        np.testing.assert_allclose(np.load(dumps / entry["file"]), expected, rtol=1e-6)
    done = invoke_script("diff", colliding, "--random-inputs", 0, "--against", dumps)
    assert done.exit_code == 0, done.output
    assert "9 tensors agree" in done.output
    assert "Not compared" not in done.output
    wrong = np.load(dumps / "plain.npy") + 1
    np.save(dumps / "plain.npy", wrong)
    done = invoke_script("diff", colliding, "--random-inputs", 0, "--against", dumps)
    assert done.exit_code == 1
    assert "1 of 9 tensors are out of tolerance" in done.output


def test_dumps_that_match_no_tensor_or_several(colliding: Path, tmp_path: Path) -> None:
    """Without a manifest, a name of a file that fits two tensors fits neither."""
    model = deconv_ir.load(colliding)
    found = model.run([np.zeros(2, np.float32)], outputs=["a/b", "plain"])
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    np.save(tmp_path / "x.npy", np.zeros(2, np.float32))
    for name, array in (("a_b", found["a/b"]), ("plain:0", found["plain"]), ("older", 0)):
        np.save(dumps / f"{name}.npy", array)
    np.save(dumps / "_b.npy", found["a/b"])
    arguments = ("diff", colliding, "--input", tmp_path / "x.npy", "--against", dumps)
    done = invoke_script(*arguments)
    assert "Not compared, since no tensor has this name: _b, older" in done.output
    # 'a_b' is the exact name of one of them, and has the values of another.
    assert "1 of 2 tensors are out of tolerance" in done.output
    (dumps / "a_b.npy").rename(dumps / "ä.npy")
    found = json.loads(invoke_script(*arguments, "--format", "json").stdout)
    assert found["unmatched"] == dict.fromkeys(["_b", "older", "ä"], "no tensor has this name")


def test_a_shortened_name_of_several_tensors(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "2")
    for name in ("a/b", "a:b", "c"):
        ir.result(ir.layer("ReLU", [x], name=name))
    path = ir.save(tmp_path)
    ones = np.ones(2, np.float32)
    found = deconv_ir.diff(path, None, ones, against={"a_b": ones, "c": ones})
    assert [tensor.name for tensor in found.tensors] == ["c"]
    assert found.unmatched == {"a_b": "it may be 'a/b' or 'a:b'"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "it is not JSON"),
        ("[" * 100000, "it is not JSON"),
        ("[]", 'it has no list "tensors"'),
        ('{"format": 2, "tensors": []}', "format 2 is not supported"),
        ('{"format": 1, "tensors": [3]}', "found 3"),
        ('{"format": 1, "tensors": [{"name": "a", "file": "../x.npy"}]}', "file in this folder"),
        ('{"format": 1, "tensors": [{"name": "a", "file": "/x.npy"}]}', "file in this folder"),
        ('{"format": 1, "tensors": [{"name": "a", "file": "x.npz"}]}', "file in this folder"),
        ('{"format": 1, "tensors": [{"name": 1, "file": "x.npy"}]}', "expected a name"),
    ],
)
def test_damaged_manifests(colliding: Path, tmp_path: Path, text: str, words: str) -> None:
    np.save(tmp_path / "x.npy", np.zeros(2, np.float32))
    (tmp_path / "deconv-tensors.json").write_text(text)
    for arguments in (
        ("diff", colliding, "--random-inputs", 0, "--against", tmp_path),
        ("run", colliding, "--random-inputs", 0, "--output", tmp_path),
    ):
        done = invoke_script(*arguments)
        assert done.exit_code == 2
        assert done.stderr.startswith(f"error: {tmp_path / 'deconv-tensors.json'}: not a manifest")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


def test_dumps_of_types_that_numpy_lacks(tmp_path: Path) -> None:
    """A .npy file has bfloat16 as raw bytes of dtype V2."""
    ir = IR()
    x = ir.parameter("x", "3", "bf16")
    ir.result(ir.layer("ReLU", [x], name="y", precision="BF16"))
    path = ir.save(tmp_path)
    dumps = tmp_path / "dumps"
    arguments = (path, "--random-inputs", 0)
    assert invoke_script("run", *arguments, "--output", f"{dumps}/").exit_code == 0
    assert np.load(dumps / "y.npy").dtype == np.dtype("V2")
    done = invoke_script("diff", *arguments, "--against", dumps)
    assert done.exit_code == 0, done.output
    np.save(dumps / "y.npy", np.array(["a", "b", "c"]))
    done = invoke_script("diff", *arguments, "--against", dumps)
    assert done.exit_code == 2
    assert "the array 'y' has dtype <U1" in done.stderr


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


CRASHING = """
import os, sys, numpy as np, deconv_ir
model, inputs, outputs = sys.argv[1:]
if 'type="{type}"' in open(model).read():
    sys.stderr.buffer.write(b"first\\nbad \\xff\\n")
    sys.stderr.flush()
    {end}
np.savez(outputs, **deconv_ir.load(model, warn=False).run(dict(np.load(inputs))))
"""


@pytest.mark.parametrize(
    ("end", "words"),
    [("sys.exit(3)", "exit code 3"), ("os.kill(os.getpid(), 11)", "signal SIGSEGV")],
)
@pytest.mark.parametrize(("type_", "layer"), [("Elu", "elu"), ("Convolution", "enc")])
def test_a_tool_that_crashes_on_a_layer(
    original: Path, tmp_path: Path, end: str, words: str, type_: str, layer: str
) -> None:
    """A crash is a result: the first layer with which it happens is found, even the very first."""
    (tmp_path / "tool.py").write_text(CRASHING.replace("{type}", type_).replace("{end}", end))
    command = f"{sys.executable} {tmp_path / 'tool.py'} {{model}} {{inputs}} {{outputs}}"
    options = ("--random-inputs", 0, "--bisect", "--command", command, "--format", "json")
    done = invoke_script("diff", original, *options)
    assert done.exit_code == 1, done.output
    culprit = json.loads(done.stdout)["culprit"]
    assert culprit["tensor"]["name"] == layer
    assert culprit["tensor"]["note"] == f"{sys.executable} crashes: {words}: bad \ufffd"
    assert f"crashes: {words}" in done.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("tool {model} {inputs}", "{outputs} is missing"),
        ("tool 'x {model} {inputs} {outputs}", "quotation"),
        ("no-such-tool {model} {inputs} {outputs}", "No such file"),
        ("false {model} {inputs} {outputs}", "false crashes: exit code 1, with every part"),
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
        (("--against", "a", "--against", "b", "--random-inputs", "0"), "nor a folder"),
        (
            ("--against", *("x", "--against") * 2, "x", "--random-inputs", "0"),
            "at most two folders",
        ),
        (("B", "--verdict", "always"), "use --input FILE, or --random-inputs SEED"),
        (("B", "--setting", "A=B", "--random-inputs", "0"), "goes with --against openvino"),
        (
            ("--setting", "A", "--against", "openvino", "--random-inputs", "0"),
            "expected NAME=VALUE",
        ),
        (("B", "--random-inputs", "0", "--plot", "e.txt"), "must end with .png or .svg"),
    ],
)
def test_options_that_do_not_fit(original: Path, arguments: tuple[str, ...], words: str) -> None:
    done = invoke_script("diff", original, *(str(original) if a == "B" else a for a in arguments))
    assert done.exit_code == 2
    assert words in done.output


def test_dumps_of_both_sides_get_a_verdict(original: Path, tmp_path: Path) -> None:
    """No runtime and no run of this library: the exact values follow from the model."""
    x = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    names = ["enc", "enc/bias", "enc/relu", "mid"]
    values = deconv_ir.load(original).run(x, outputs=names)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name, array in values.items():
            wrong = folder == "one" and name in ("enc/relu", "mid")
            np.save(tmp_path / folder / f"{name.replace('/', '_')}.npy", array * (1 + 0.01 * wrong))
    folders = ("--against", tmp_path / "one", "--against", tmp_path / "two")
    options = ("diff", original, "--input", tmp_path / "x.npy", *folders)
    done = invoke_script(*options)
    assert done.exit_code == 1
    first, *lines = done.output.splitlines()
    assert first.startswith("A is wrong in layer 'enc/relu' (ReLU, line ")
    assert first.endswith("B is right.")
    (row,) = (line for line in lines if line.startswith("enc/relu") and "WRONG" in line)
    assert row.split()[-2:] == ["0.0099", "0"]  # the difference; nothing is inherited
    assert row.index("WRONG") < row.index("right")
    document = json.loads(invoke_script(*options, "--format", "json").output)
    assert document["verdict"]["sentence"] == first
    assert document["verdict"]["wrong"] == ["A"]
    layers = {layer["name"]: layer for layer in document["verdict"]["layers"]}
    assert layers["enc/relu"]["a"]["right"] is False
    assert layers["mid"]["a"]["right"] is True
    assert layers["mid"]["inherited"] > 0.005
    done = invoke_script(*options, "--verdict", "never")
    assert done.output.startswith("A  ")
    done = invoke_script(*options, "--rtol", "1", "--verdict", "always")
    assert done.exit_code == 0
    assert done.output.startswith("A is wrong in ")
    plot = tmp_path / "error.svg"
    invoke_script(*options, "--plot", plot)
    text = plot.read_text()
    assert "A is wrong" in text
    assert "made by B" in text


def test_plot(original: Path, broken: Path, tmp_path: Path) -> None:
    options = ("--random-inputs", 0, "--plot", tmp_path / "error.png")
    invoke_script("diff", original, broken, *options)
    assert (tmp_path / "error.png").read_bytes().startswith(b"\x89PNG")
    done = invoke_script("diff", original, broken, *options)
    assert done.exit_code == 2
    assert "the file exists (use --force)" in done.output
    done = invoke_script("diff", original, original, *options, "--force")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("name", "layer", "label"),
    [
        ("226", "'block/conv' (Convolution, id 5)", "block/conv"),  # numbered by a converter
        ("y", "'block/conv' (Convolution, id 5)", "y"),
        ("7", "'a (b)' (Add, id 5)", "a (b)"),
        ("stage/" * 9 + "output", "'x' (Add, id 1)", f"stage/stag{ELLIPSIS}/stage/stage/output"),
    ],
)  # fmt: skip
def test_labels_of_plots(name: str, layer: str, label: str) -> None:
    assert label_of(deconv_ir.TensorDifference(name, layer, None, True)) == label


@pytest.mark.parametrize("suffix", ["svg"])
def test_plots_show_their_axes(
    suffix: str, original: Path, broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With texts as texts, those of the axes are in the figure, and inside it."""
    matplotlib = pytest.importorskip("matplotlib", reason="the diagrams extra is not installed")
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    path = tmp_path / f"error.{suffix}"
    invoke_script("diff", original, broken, "--random-inputs", 0, "--plot", path)
    root = etree.parse(path).getroot()
    (label,) = (e for e in root.iter("{*}text") if e.text == "error / largest magnitude")
    height = float(root.get("viewBox").split()[3])
    # Rotated about its middle: half of its length of 25 letters is above and below.
    middle = float(re.search(r"-90 [\d.]+ ([\d.]+)", label.get("transform"))[1])
    half = 25 * 6 / 2
    assert half < middle < height - half


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


def test_random_inputs_fit_both_models(tmp_path: Path) -> None:
    """Dynamic dims of the first model get the sizes that the second one states."""
    paths = {}
    for name, shape in (("dynamic", "?,4,?,?"), ("static", "2,4,9,7"), ("other", "2,5,9,7")):
        ir = IR()
        ir.result(ir.layer("ReLU", [ir.parameter("x", shape)], outputs=(shape,), name="r"))
        (tmp_path / name).mkdir()
        paths[name] = ir.save(tmp_path / name)
    options = ("--random-inputs", 0, "--ignore", "attribute,shape")
    done = invoke_script("diff", paths["dynamic"], paths["static"], *options)
    assert "input 'x' [?,4,?,?]: the second model takes [2,4,9,7]" in done.stderr
    assert "agree" in done.output
    done = invoke_script("diff", paths["dynamic"], paths["other"], *options)
    assert done.exit_code == 2  # no array fits both
    assert "input 'x' takes shape [2,5,9,7]" in done.stderr
