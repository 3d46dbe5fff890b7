"""Verification of a golden directory, and of a user's outputs against it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import invoke_script

from deconv_ir.errors import DeconvError
from deconv_ir.spec_examples.generate import generate
from deconv_ir.spec_examples.specfile import parse_spec
from deconv_ir.spec_examples.verify import Verification, verify

SPEC = """
operation = "ConvolutionBackpropData"
seed = 7
[[example]]
name = "a"
attributes = { strides = [2] }
inputs = { data = [1, 2, 4], filter = [2, 2, 3] }
[[example]]
name = "b"
attributes = { strides = [2], auto_pad = "valid" }
inputs = { data = [1, 2, 4], filter = [2, 2, 3] }
values = { output_shape = [6] }
profiles = ["spec", "openvino"]
[[example]]
name = "c"
element_type = "bf16"
inputs = { data = [1, 2, 4], filter = [2, 2, 3] }
[[example]]
name = "d"
arrays = false
inputs = { data = [1, 2, 400, 400], filter = [2, 2, 3, 3] }
"""


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    root = tmp_path / "golden"
    for name, data in generate(parse_spec(SPEC.encode())).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def test_what_was_generated_verifies(golden: Path) -> None:
    assert verify(golden) == Verification(4, ())


def test_the_profiles_differ(golden: Path) -> None:
    assert not np.array_equal(
        np.load(golden / "b/output.npy"), np.load(golden / "b/output.openvino.npy")
    )


@pytest.mark.parametrize(
    ("file", "rules"),
    [
        ("a/data.npy", ["golden-hash", "golden-values"]),
        ("a/filter.npy", ["golden-hash", "golden-values"]),
        ("a/output.npy", ["golden-hash", "golden-values"]),
        ("b/output_shape.npy", ["golden-hash", "golden-values"]),
        ("b/output.openvino.npy", ["golden-hash", "golden-values"]),
        ("c/output.npy", ["golden-hash", "golden-values"]),
        ("a/model.bin", ["golden-hash"]),
        ("a/model.xml", ["golden-hash"]),
        ("d/layer.xml", ["golden-hash"]),
    ],
)
def test_a_changed_byte_is_found(golden: Path, file: str, rules: list[str]) -> None:
    path = golden / file
    data = bytearray(path.read_bytes())
    data[-1] ^= 0x40
    path.write_bytes(data)
    findings = verify(golden).findings
    assert [f.rule for f in findings] == rules
    assert {f.file for f in findings} == {str(path)}


@pytest.mark.parametrize("file", ["a/data.npy", "a/output.npy", "a/model.bin", "d/model.xml"])
def test_a_missing_file_is_found(golden: Path, file: str) -> None:
    (golden / file).unlink()
    (finding,) = verify(golden).findings
    assert finding.rule == "golden-file"
    assert str(finding) == f"{golden / file}: cannot read the file: No such file or directory"


def copy_outputs(golden: Path, to: Path) -> Path:
    for path in golden.rglob("output*.npy"):
        if path.name != "output_shape.npy":
            target = to / path.relative_to(golden)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return to


def test_outputs_of_another_program_are_verified(golden: Path, tmp_path: Path) -> None:
    actual = copy_outputs(golden, tmp_path / "actual")
    assert verify(golden, actual) == Verification(4, ())


def swap(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder(">"))


@pytest.mark.parametrize("change", [np.asfortranarray, swap], ids=["Fortran order", "big-endian"])
def test_memory_layout_of_outputs_does_not_matter(
    golden: Path, tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    actual = copy_outputs(golden, tmp_path / "actual")
    np.save(actual / "a/output.npy", change(np.load(golden / "a/output.npy")))
    assert verify(golden, actual).findings == ()


def off(array: np.ndarray) -> np.ndarray:
    changed = array.copy()
    changed[0, 1, 2] += 0.5
    changed[0, 1, 7] = np.nan
    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (off, "2 of 18 elements differ, by up to 0.5; the first at [0,1,2]: "),
        (lambda a: a[..., :-1], "shape is [1,2,8], expected [1,2,9]"),
        (lambda a: a[0], "shape is [2,9], expected [1,2,9]"),
        (lambda a: a.astype(np.float64), "element type is float64, expected f32"),
        (lambda a: a.astype(np.int32), "element type is int32, expected f32"),
        (lambda a: a.view("V4"), None),
    ],
)
def test_a_wrong_output_of_another_program_is_reported(
    golden: Path, tmp_path: Path, change: Callable[[Any], Any], message: str | None
) -> None:
    actual = copy_outputs(golden, tmp_path / "actual")
    np.save(actual / "a/output.npy", change(np.load(golden / "a/output.npy")))
    findings = verify(golden, actual).findings
    if message is None:  # raw bytes of the right size are read as the type's stored form
        assert findings == ()
        return
    (finding,) = findings
    assert finding.file == str(actual / "a/output.npy")
    assert finding.rule in ("actual-values", "actual-file")
    assert finding.message.startswith(message)


def test_missing_outputs_of_another_program_are_reported(golden: Path, tmp_path: Path) -> None:
    verification = verify(golden, tmp_path)
    assert verification.compared == 0
    assert [f.rule for f in verification.findings] == ["actual-file"] * 4


def test_tolerance(golden: Path, tmp_path: Path) -> None:
    actual = copy_outputs(golden, tmp_path / "actual")
    array = np.load(golden / "a/output.npy")
    np.save(actual / "a/output.npy", array * np.float32(1.01))
    assert len(verify(golden, actual).findings) == 1
    assert verify(golden, actual, rtol=0.02).findings == ()
    assert verify(golden, actual, atol=0.5).findings == ()
    assert len(verify(golden, actual, atol=0.001).findings) == 1


def edit(golden: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = golden / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


MANIFESTS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda m: m.update(format="x"), "its 'format' is not"),
    (lambda m: m.update(examples=5), "'examples' must be a list"),
    (lambda m: m["examples"].append(5), "each example must be an object"),
    (lambda m: m["examples"][0].pop("inputs"), "'inputs' of an example is missing or not a list"),
    (
        lambda m: m["examples"][0].update(files=[]),
        "'files' of an example is missing or not an object",
    ),
    (lambda m: m["examples"][0]["inputs"].append(5), "each input must be an object"),
    (lambda m: m["examples"][0]["outputs"].clear(), "example 'a' has no outputs"),
    (lambda m: m["examples"][0]["inputs"].reverse(), "the inputs of example 'a' are not in order"),
    (lambda m: m["examples"][0]["inputs"].pop(), "takes 2 to 3 inputs"),
    (lambda m: m["examples"][0].update(name="../a"), "'name' must be lower-case letters"),
    (lambda m: m.update(operation="Nothing"), "operation Nothing of opset1 is not known"),
    (lambda m: m.update(operation=5), "'operation' must be text"),
    (lambda m: m["examples"][0]["inputs"][0].update(shape=["x"]), "whole numbers"),
    (lambda m: m["examples"][0]["inputs"][0].update(shape=[1, 2, 10**9]), "but the inputs give"),
    (
        lambda m: m["examples"][0]["outputs"][0].update(shape=[1, 2, 8]),
        "but the inputs give [1,2,9]",
    ),
    (lambda m: m["examples"][0]["outputs"][0].update(profile="x"), "'profiles' must be of"),
    (
        lambda m: m["examples"][0]["outputs"].append(m["examples"][0]["outputs"][0]),
        "one output per",
    ),
    (lambda m: m["examples"][3].update(arrays=True), "example 'd' is too large for golden"),
]


@pytest.mark.parametrize(("change", "message"), MANIFESTS)
def test_invalid_manifests_are_refused(
    golden: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit(golden, change)
    with pytest.raises(DeconvError) as caught:
        verify(golden)
    assert message in caught.value.message
    assert caught.value.file == str(golden / "manifest.json")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff", '{"format": 1'])
def test_manifests_that_are_no_json(golden: Path, text: str) -> None:
    (golden / "manifest.json").write_text(text, "latin-1")
    with pytest.raises(DeconvError, match="invalid manifest"):
        verify(golden)


def test_a_manifest_names_no_file_elsewhere(golden: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    edit(golden, lambda m: m["examples"][0]["files"].update({"../../secret": "0", "..": "0"}))
    assert verify(golden).findings == ()


def test_missing_and_wrong_seeds_are_reported(golden: Path) -> None:
    edit(golden, lambda m: m["examples"][0]["inputs"][0].update(seed="7"))
    (finding,) = verify(golden).findings
    assert finding.message == "the manifest has no seed for it"
    edit(golden, lambda m: m["examples"][0]["inputs"][0].update(seed=8))
    findings = verify(golden).findings
    assert [(f.rule, Path(f.file or "").name) for f in findings] == [
        ("golden-values", "data.npy"),
        ("golden-values", "output.npy"),
    ]


# The command


def test_generate_and_verify(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    out = tmp_path / "a" / "golden"
    made = invoke_script("spec", "generate", tmp_path / "spec.toml", "--out", out)
    assert made.exit_code == 0, made.output
    files = [p for p in out.rglob("*") if p.is_file()]
    size = sum(p.stat().st_size for p in files)
    assert made.stdout == f"{out}: 4 examples, {len(files)} files, {size} bytes\n"
    clean = invoke_script("spec", "verify", out)
    assert (clean.exit_code, clean.stdout) == (0, "4 outputs compared, no findings\n")
    (out / "a" / "output.npy").unlink()
    found = invoke_script("spec", "verify", out)
    assert found.exit_code == 1
    assert found.stdout == (
        f"{out}/a/output.npy: cannot read the file: No such file or directory\n"
        "3 outputs compared, 1 finding\n"
    )
    assert invoke_script("spec", "verify", tmp_path).exit_code == 2


def test_generating_twice_gives_the_same_bytes_and_the_formats_differ(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)

    def make(name: str, *options: str) -> dict[str, bytes]:
        out = tmp_path / name
        arguments = ("generate", tmp_path / "spec.toml", "--out", out, "-q", *options)
        assert invoke_script("spec", *arguments).output == ""
        return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}

    first = make("first")
    assert make("second") == first
    for page_format in ("rst", "xml"):
        other = make(page_format, "--format", page_format)
        assert f"examples.{page_format}" in other
        assert other["manifest.json"] == first["manifest.json"]


def test_a_file_that_cannot_be_made_leaves_all_unwritten(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC.replace("arrays = false", ""))
    result = invoke_script("spec", "generate", tmp_path / "spec.toml", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "example 'd' is too large for golden arrays" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "out").write_text("a file")
    result = invoke_script("spec", "generate", tmp_path / "spec.toml", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "cannot write the file" in result.stderr
