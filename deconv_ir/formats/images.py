"""Arrays for inputs from PNG and JPEG files, read by Pillow (extra ``samples``)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from deconv_ir.errors import DeconvError, InputError, ResourceError, UnsupportedError
from deconv_ir.formats import npy, npz
from deconv_ir.formats.files import open_regular, similar_file
from deconv_ir.formats.recognise import START, recognise
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph, Port
from deconv_ir.ir.layouts import guess_layout, stated_layout
from deconv_ir.ir.shapes import Shape, compatible, format_shape

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES: Final = (".png", ".jpg", ".jpeg")
MAX_PIXELS: Final = 1 << 26
"""Larger images are refused before they are decoded: a small file can claim any size."""

_MODES: Final = {"1": "L", "L": "L", "RGB": "RGB", "RGBA": "RGBA"}
"""Mode of a file -> that of the array."""
_NAMES: Final = {"L": "greyscale", "RGB": "RGB", "RGBA": "RGB and alpha"}
_CHANNELS: Final = {"L": 1, "RGB": 3, "RGBA": 4}


def is_image(path: str) -> bool:
    """Whether a path has the suffix of an image."""
    return path.lower().endswith(SUFFIXES)


def read_input(
    graph: Graph,
    inputs: Mapping[str, Port],
    name: str,
    path: str,
    shape: Shape = None,
    require: Callable[[tuple[int, ...]], None] | None = None,
) -> Array:
    """Read the array of a model's input from a .npy, .npz or image file.

    Parameters
    ----------
    graph : Graph
    inputs : mapping
        Those of the model, in the order of the graph's Parameters.
    name : str
        The input.
    path : str
    shape : Shape
        The dims that an image must have; by default those of the model.
    require : function, optional
        It is called with the shape of an image's array before the image is decoded, and raises an
        error if the array does not fit into memory.
    """
    if is_image(path) and name in inputs:
        position = list(inputs).index(name)
        stated = stated_layout(graph.of_type("Parameter")[position])
        wanted = shape or inputs[name].shape
        return _read(path, name, inputs[name], wanted, stated, require or (lambda shape: None))
    return npz.read(path, name) if path.endswith(npz.SUFFIX) else npy.read(path)


def _read(
    path: str,
    name: str,
    port: Port,
    shape: Shape,
    stated: str | None,
    require: Callable[[tuple[int, ...]], None],
) -> Array:
    """Read an image in the layout and the element type of an input."""
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        message = "images require Pillow, of the extra 'samples'"
        raise UnsupportedError(message, file=path, hint=Hint.INSTALL_EXTRA("samples")) from None
    try:
        with open_regular(path) as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes, which are checked below
            start = stream.read(START)
            stream.seek(0)
            file_type = recognise(start)
            if file_type is None or not file_type.is_image:
                what = "" if file_type is None else f": it is {file_type.what}"
                raise InputError(f"not a PNG or JPEG image{what}", file=path)
            with Image.open(stream, formats=("PNG", "JPEG")) as image:
                pixels = image.width * image.height
                if pixels > MAX_PIXELS:
                    raise _too_large(f"{image.width} x {image.height}")
                # A photograph may be stored on its side; viewers and OpenCV turn it.
                photograph = image.format == "JPEG"
                turned = photograph and image.getexif().get(_ORIENTATION) in range(5, 9)
                size = (image.width, image.height) if turned else (image.height, image.width)
                layout = _layout(image, size, name, shape, stated)
                require(_dims(layout, _CHANNELS[_mode(image)], *size))
                array = _pixels(ImageOps.exif_transpose(image) if photograph else image)
    except DeconvError as error:
        raise error.locate(file=path) from None
    except MemoryError:
        raise ResourceError("cannot read the image: not enough memory", file=path) from None
    except Image.DecompressionBombError:
        raise _too_large("far too many").locate(file=path) from None
    except UnidentifiedImageError:
        raise InputError("cannot read the image: it is damaged", file=path) from None
    except OSError as error:
        reason = error.strerror or _reason(error)
        hint = similar_file(path, SUFFIXES)
        raise InputError(f"cannot read the image: {reason}", file=path, hint=hint) from error
    except Exception as error:  # Pillow raises errors of many kinds for damaged files
        raise InputError(f"cannot read the image: {_reason(error)}", file=path) from error
    return _arranged(array, layout, name, port)


_ORIENTATION: Final = 0x0112


def _too_large(size: str) -> DeconvError:
    message = f"the image has {size} pixels, more than the limit of {MAX_PIXELS}"
    return ResourceError(message, expected=f"<= {MAX_PIXELS}", actual=size)


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__


def _mode(image: Image) -> str:
    """Return the mode of the array."""
    if image.mode == "P":  # a palette is a way to store colours
        return "RGBA" if "transparency" in image.info else "RGB"
    found = _MODES.get(image.mode)
    if found is None:
        raise InputError(
            f"images of mode {image.mode} are not read",
            expected="8-bit greyscale, RGB, or RGB and alpha",
            actual=image.mode,
            hint=Hint.CONVERT_MODE(),
        )
    return found


def _layout(
    image: Image, size: tuple[int, int], name: str, shape: Shape, stated: str | None
) -> str:
    """Return the layout of the input, after checking that the image has its dims."""
    mode = _mode(image)
    channels = _CHANNELS[mode]
    height, width = size
    letters = "chw" if shape is not None and len(shape) == 3 else "nchw"
    layout = stated or guess_layout(shape, letters) or letters
    if stated is None and not _has(shape, layout, channels, height, width):
        last = letters.replace("c", "") + "c"
        layout = last if _has(shape, last, channels, height, width) else layout
    if not set("chw") <= set(layout) <= set("nchw"):
        message = f"input {name!r}: the layout {layout!r} is not that of an image"
        raise InputError(message, actual=layout)
    if _has(shape, layout, channels, height, width):
        return layout
    assert shape is not None, "every image has a dynamic rank"
    found = _dims(layout, channels, height, width)
    described = f"the image is {width} x {height} pixels, {_NAMES[mode]}"
    hint = None
    if len(found) == len(shape):
        other = {x: d for x, d, e in zip(layout, shape, found, strict=True) if not _fits(d, e)}
        if "c" in other:
            hint = (Hint.CONVERT_CHANNEL if other["c"] == 1 else Hint.CONVERT_CHANNELS)(other["c"])
        elif other.keys() <= {"h", "w"}:
            hint = Hint.RESIZE(format_shape(found))
        elif "n" in other:
            hint = Hint.BATCH_OF_ONE()
    raise InputError(
        f"input {name!r} takes shape {format_shape(shape)}, {layout}: {described}",
        expected=format_shape(shape),
        actual=format_shape(found),
        hint=hint,
        rule="input-shape",
    )


def _dims(layout: str, channels: int, height: int, width: int) -> tuple[int, ...]:
    extents = {"n": 1, "c": channels, "h": height, "w": width}
    return tuple(extents[letter] for letter in layout)


def _has(shape: Shape, layout: str, channels: int, height: int, width: int) -> bool:
    """Whether an input takes an image in a layout."""
    if not set(layout) <= set("nchw"):
        return False
    return compatible(_dims(layout, channels, height, width), shape)


def _fits(declared: Any, extent: int) -> bool:
    return compatible((declared,), (extent,))


def _pixels(image: Image) -> Array:
    """Return the pixels as u8, height by width by channels."""
    import numpy as np

    mode = _mode(image)
    array: Array = np.asarray(image if image.mode == mode else image.convert(mode))
    return array.reshape(image.height, image.width, _CHANNELS[mode])


def _arranged(array: Array, layout: str, name: str, port: Port) -> Array:
    """Bring pixels into the layout and the element type of an input."""
    import numpy as np

    from deconv_ir.arrays.casting import convert

    axes = layout.replace("n", "")
    array = np.ascontiguousarray(array.transpose(["hwc".index(letter) for letter in axes]))
    if "n" in layout:
        array = np.expand_dims(array, layout.index("n"))
    element_type = port.element_type
    if element_type is None or array.dtype == element_type.numpy():
        return array
    if element_type.kind == "string":
        return array  # reported by the model
    return convert(array, element_type, name=name, wrap=False)
