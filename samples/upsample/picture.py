"""Convert a picture to .npy, and .npy to a PNG.

    python picture.py to-npy PICTURE FILE.npy [--border N]
    python picture.py to-png FILE.npy PICTURE.png
    python picture.py photo PICTURE.png      # a photograph from matplotlib's sample data

Arrays are u8[1, 3, height, width], RGB.  Needs the `samples` extra.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from PIL import Image


@click.group()
def main() -> None:
    """Turn a picture into a .npy file and back."""


@main.command("to-npy")
@click.argument("picture", type=click.Path(exists=True, dir_okay=False))
@click.argument("array", type=click.Path())
@click.option("--border", type=click.IntRange(0), default=0, help="Repeat edge pixels.")
def to_npy(picture: str, array: str, border: int) -> None:
    """Write PICTURE as u8[1, 3, height, width] to ARRAY."""
    pixels = np.asarray(Image.open(picture).convert("RGB"))
    pixels = np.pad(pixels, ((border, border), (border, border), (0, 0)), mode="edge")
    np.save(array, np.ascontiguousarray(pixels.transpose(2, 0, 1)[None]))


@main.command("to-png")
@click.argument("array", type=click.Path(exists=True, dir_okay=False))
@click.argument("picture", type=click.Path())
def to_png(array: str, picture: str) -> None:
    """Write u8[1, 3, height, width] in ARRAY as a PNG."""
    pixels = np.load(array)
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[:2] != (1, 3):
        raise click.ClickException(
            f"{array}: expected u8[1,3,height,width], found {pixels.dtype}{list(pixels.shape)}"
        )
    Image.fromarray(pixels[0].transpose(1, 2, 0)).save(picture, format="PNG")


@main.command()
@click.argument("picture", type=click.Path())
def photo(picture: str) -> None:
    """Write a photograph in the public domain, Grace Hopper in 1984, to PICTURE."""
    from matplotlib.cbook import get_sample_data

    source = get_sample_data("grace_hopper.jpg", asfileobj=False)
    Path(picture).parent.mkdir(parents=True, exist_ok=True)
    Image.open(str(source)).crop((96, 16, 416, 336)).save(picture, format="PNG")


if __name__ == "__main__":
    main()
