"""PNG and JPEG files as inputs: their pixels, and the files that are refused."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support import IR, invoke, invoke_script

from deconv_ir.formats.images import MAX_PIXELS

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (4, 5, 3), np.uint8)
ALPHA = np.dstack([PIXELS, PIXELS[..., :1]])


def save_model(shape: str, element_type: str = "f32") -> None:
    """Save y = x for an input of this shape."""
    ir = IR()
    x = ir.parameter("x", shape, element_type)
    precision = {"f32": "FP32", "f16": "FP16"}.get(element_type, element_type.upper())
    ir.result(ir.layer("Reshape", [x, ir.const(np.array([-1]))], {"special_zero": "false"},
                       precision=precision, outputs=("?",), names="y"))  # fmt: skip
    ir.save(Path())


def values(*options: str) -> np.ndarray:
    """Run the model on x.png, and return the elements of the input in their order."""
    done = invoke("model.xml", "--input", "x.png", "--force", *options)
    assert done.exit_code == 0, done.stderr
    return np.load("y.npy")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("shape", "element_type", "pixels", "axes"),
    [
        ("1,3,4,5", "f32", PIXELS, (2, 0, 1)),
        ("1,4,5,3", "u8", PIXELS, (0, 1, 2)),  # the last extent is 3, the second is not
        ("3,4,5", "f16", PIXELS, (2, 0, 1)),
        ("?,3,?,?", "i32", PIXELS, (2, 0, 1)),
        ("?,?,?,?", "f32", ALPHA, (2, 0, 1)),
        ("1,4,4,5", "f32", ALPHA, (2, 0, 1)),
        ("...", "f32", PIXELS, (2, 0, 1)),
        ("1,1,4,5", "f32", PIXELS[..., :1], (2, 0, 1)),
        ("4,5,1", "u8", PIXELS[..., :1], (0, 1, 2)),
    ],
)
def test_pixels(shape: str, element_type: str, pixels: np.ndarray, axes: tuple[int, ...]) -> None:
    save_model(shape, element_type)
    Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels).save("x.png")
    np.testing.assert_array_equal(values(), pixels.transpose(axes).reshape(-1))


def test_with_preprocessing() -> None:
    """The pixels come as the preprocessed input takes them: the result is the same either way."""
    save_model("1,3,4,5")
    Image.fromarray(PIXELS).save("x.png")
    expected = (PIXELS.transpose(2, 0, 1)[::-1] - np.reshape([1.0, 2, 3], (3, 1, 1))).reshape(-1)
    options = ("--reverse-channels", "--mean", "1,2,3")
    for more in ((), ("--layout", "nhwc"), ("--input-type", "u8", "--layout", "nhwc")):
        np.testing.assert_array_equal(values(*options, *more), expected)
    save_model("1,?,?,?")  # both layouts fit: the stated one decides
    np.testing.assert_array_equal(values(*options, "--layout", "nhwc"), expected)


def test_palettes_and_photographs_on_their_side() -> None:
    save_model("1,3,4,5")
    image = Image.fromarray(PIXELS).quantize(16)
    image.save("x.png")
    expected = np.asarray(image.convert("RGB"))
    np.testing.assert_array_equal(values(), expected.transpose(2, 0, 1).reshape(-1))
    # Orientation 6: the stored picture is turned by 90 degrees clockwise for display.
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.rot90(PIXELS, 1)).save("x.jpg", exif=exif, quality=100, subsampling=0)
    done = invoke("model.xml", "--input", "x.jpg", "--force")
    assert done.exit_code == 0, done.stderr
    stored = np.asarray(Image.open("x.jpg"))
    upright = np.rot90(stored, -1)
    np.testing.assert_array_equal(np.load("y.npy"), upright.transpose(2, 0, 1).reshape(-1))


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG file (PNG specification, section 5.3)."""
    body = kind + data
    return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def png_that_claims(width: int, height: int) -> bytes:
    """Return a PNG of this size without its pixels."""
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    ends = chunk(b"IDAT", zlib.compress(bytes(8))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + ends


def encode(mode: str, pixels: np.ndarray = PIXELS) -> Callable[[], bytes]:
    def make() -> bytes:
        Image.fromarray(pixels).convert(mode).save("made.png" if mode != "CMYK" else "made.jpg")
        return Path("made.png" if mode != "CMYK" else "made.jpg").read_bytes()

    return make


@pytest.mark.parametrize(
    ("shape", "data", "text"),
    [
        ("1,3,4,5", encode("L"), "greyscale (convert it to 3 channels)"),
        ("1,3,4,5", encode("RGBA"), "RGB and alpha (convert it to 3 channels)"),
        ("1,1,4,5", encode("RGB"), "RGB (convert it to 1 channel)"),
        (
            "1,3,4,5",
            encode("LA"),
            "images of mode LA are not read (convert it to 8-bit greyscale or",
        ),
        ("1,3,4,5", encode("CMYK"), "images of mode CMYK are not read"),
        ("1,3,4,5", encode("I;16"), "images of mode I;16 are not read"),
        ("1,3,5,4", encode("RGB"), "takes shape [1,3,5,4], nchw: the image is 5 x 4 pixels, RGB"),
        ("1,3,5,4", encode("RGB"), "(resize it, or reshape the model to [1,3,4,5])"),
        ("2,3,4,5", encode("RGB"), "(an image is a batch of 1)"),
        ("4,5", encode("RGB"), "takes shape [4,5]"),
        ("1,3,4,5", b"", "not a PNG or JPEG image"),
        ("1,3,4,5", b"\x93NUMPY\x01\0", "not a PNG or JPEG image: it is a .npy array"),
        ("1,3,4,5", b"\x89PNG\r\n\x1a\n" + bytes(40), "cannot read the image: it is damaged"),
        ("1,3,4,5", b"\xff\xd8\xff\xe0" + bytes(40), "cannot read the image: it is damaged"),
        ("1,3,4,5", png_that_claims(5, 4), "cannot read the image: "),
        ("1,3,?,?", png_that_claims(9000, 9000), "9000 x 9000 pixels, more than the limit"),
        ("1,3,?,?", png_that_claims(50_000, 50_000), f"more than the limit of {MAX_PIXELS}"),
        ("1,3,?,?", png_that_claims(2**31 - 1, 2**31 - 1), "more than the limit"),
        ("1,3,4,5", None, "cannot read the image: No such file or directory"),
    ],
)
def test_files_that_are_refused(
    shape: str, data: bytes | Callable[[], bytes] | None, text: str
) -> None:
    save_model(shape)
    if data is not None:
        Path("x.png").write_bytes(data() if callable(data) else data)
    done = invoke("model.xml", "--input", "x.png")
    assert done.exit_code == 2
    assert text in done.stderr
    assert done.stderr.startswith("error: x.png: ")
    assert done.stderr.count("\n") == 1
    assert not Path("y.npy").exists()


def test_a_type_that_pixels_do_not_fit() -> None:
    save_model("1,3,4,5", "i8")
    Image.fromarray(np.full((4, 5, 3), 200, np.uint8)).save("x.png")
    done = invoke("model.xml", "--input", "x.png")
    assert done.exit_code == 2
    assert "input 'x': element [0,0,0,0] is 200, which does not fit i8" in done.stderr


def test_without_pillow() -> None:
    save_model("1,3,4,5")
    Image.fromarray(PIXELS).save("x.png")
    code = (
        "import sys; sys.modules['PIL'] = None\n"
        "from deconv_cli.run.command import main\n"
        "sys.argv[1:] = ['model.xml', '--input', 'x.png']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "images require Pillow, of the extra 'samples'" in done.stderr
    assert "pip install" in done.stderr
    assert done.stderr.count("\n") == 1


def test_many_images_and_the_other_commands() -> None:
    """A folder, an expanded pattern and a batch; --explain-plan, deconv-show, deconv-diff."""
    save_model("?,3,4,5")
    Path("in").mkdir()
    for number in range(3):
        Image.fromarray(PIXELS + np.uint8(number)).save(f"in/{number}.PNG")
    for number, options in enumerate((["in"], ["in/0.PNG", "in/1.PNG", "in/2.PNG"])):
        done = invoke("model.xml", "--input", *options, "--output", f"out{number}/")
        assert done.exit_code == 0, done.stderr
        for image in range(3):
            expected = (PIXELS + np.uint8(image)).transpose(2, 0, 1).reshape(-1)
            np.testing.assert_array_equal(np.load(f"out{number}/{image}.npy"), expected)
    assert invoke("model.xml", "--input", "in/0.PNG", "--explain-plan").exit_code == 0
    for command in (["show", "model.xml"], ["diff", "model.xml", "model.xml"]):
        more = ["--other-input", "in/1.PNG"] if command[0] == "show" else []
        done = invoke_script(*command, "--input", "in/0.PNG", *more)
        assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_damaged_files_give_one_error(suffix: str) -> None:
    """Seeded damage: an array of the right shape, or a deliberate error."""
    from deconv_ir import DeconvError, load
    from deconv_ir.formats.images import read_input

    save_model("1,3,4,5")
    model = load("model.xml", warn=False)
    path = Path(f"x{suffix}")
    Image.fromarray(PIXELS).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    messages = []
    for _ in range(150):
        data = bytearray(whole)
        for at in rng.integers(0, len(data), rng.integers(1, 5)):
            data[at] = rng.integers(0, 256)
        path.write_bytes(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data)
        try:
            array = read_input(model.graph, model.inputs, "x", str(path))
        except DeconvError as error:
            messages.append(str(error))
        else:
            assert array.shape == (1, 3, 4, 5)
    assert messages
    assert [m for m in messages if not m.startswith(f"{path}: ") or "\n" in m] == []


def test_the_memory_limit_refuses_an_image_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small file of 4 million pixels: 48 MB in f32."""
    save_model("?,3,?,?")
    Image.new("RGB", (2000, 2000)).save("x.png")
    decoded = []
    monkeypatch.setattr(Image.Image, "load", lambda image: decoded.append(image))
    done = invoke("model.xml", "--input", "x.png", "--no-output", "--memory-limit", "1MiB")
    assert done.exit_code == 2
    assert "but the limit is 1 MiB" in done.stderr
    assert decoded == []
