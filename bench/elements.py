"""Errors of single elements, relative to their own sum of magnitudes, for uneven data.

A convolution and a transposed convolution by Winograd, direct sums and torch.  An error is
|result - exact| / (eps * sum of |data| * |weight|) of the element itself; the table has the largest
of each layer, the largest error on the scale of the layer relative to torch's, and the number of
other elements whose bits one NaN changes.
Source: docs/numerics.md quotes it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from deconv_ir.kernels import pack_convolution, pack_deconvolution

EPS = 2.0**-23
CHANNELS, EXTENT, KERNEL = 64, 48, 3
DISTRIBUTIONS = ("normal", "ReLU", "lognormal", "sparse", "spotted")


def draw(contents: str, rng: np.random.Generator) -> Any:
    """Return data [1, C, H, W] of a distribution."""
    shape = (1, CHANNELS, EXTENT, EXTENT)
    x = rng.standard_normal(shape)
    if contents == "ReLU":
        x = np.maximum(x, 0)
    elif contents == "lognormal":
        x = np.exp(3 * x)
    elif contents == "sparse":  # one element in fifty
        x = np.where(rng.random(shape) < 0.02, x, 0)
    elif contents == "spotted":  # one position in a hundred is a thousand times larger
        x = x * np.where(rng.random((1, 1, EXTENT, EXTENT)) < 0.01, 1000, 1)
    return x.astype(np.float32)


def main() -> None:
    """Measure, print a table, write JSON."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="a JSON file")
    arguments = parser.parse_args()
    rows = []
    print("layer                    data        winograd  direct   torch  of scale     NaN")
    for type_name, stride in (("Convolution", 1), ("ConvolutionBackpropData", 2)):
        rng = np.random.default_rng(44)
        weights = rng.standard_normal((CHANNELS, CHANNELS, KERNEL, KERNEL)).astype(np.float32)

        def peer(x: Any, w: Any, stride: int = stride, type_name: str = type_name) -> Any:
            with torch.no_grad():
                a, b = torch.from_numpy(x), torch.from_numpy(w)
                if type_name == "Convolution":
                    return torch.nn.functional.conv2d(a, b, padding=1).numpy()
                return torch.nn.functional.conv_transpose2d(
                    a, b, stride=stride, padding=1, output_padding=1
                ).numpy()

        pads, extents = (1, 1), (EXTENT * stride,) * 2
        make = pack_convolution if type_name == "Convolution" else pack_deconvolution
        kernels = {
            name: make(weights, strides=(stride, stride), dilations=(1, 1), algorithm=name)
            for name in ("winograd", "direct")
        }
        for name in DISTRIBUTIONS:
            x = draw(name, rng)
            exact = peer(x.astype(float), weights.astype(float))
            sums = peer(np.abs(x).astype(float), np.abs(weights).astype(float))
            found = {key: kernel.run(x, pads, extents) for key, kernel in kernels.items()}
            found["torch"] = peer(x, weights)
            row: dict[str, Any] = {"layer": type_name, "data": name}
            for key, result in found.items():
                error = np.abs(result - exact) / np.where(sums > 0, EPS * sums, 1)
                row[key] = float(error.max())
                row[f"{key} of scale"] = float(np.abs(result - exact).max() / np.abs(exact).max())
            odd = x.copy()
            odd[0, 3, EXTENT // 2, EXTENT // 2] = np.nan
            changed = kernels["winograd"].run(odd, pads, extents)
            same = (changed == found["winograd"]) | np.isnan(changed)
            row["changed"] = int(changed.size - same.sum())
            rows.append(row)
            print(
                f"{type_name:24} {name:10} {row['winograd']:9.1f} {row['direct']:7.1f} "
                f"{row['torch']:7.1f} {row['winograd of scale'] / row['torch of scale']:9.1f} "
                f"{row['changed']:9}"
            )
    if arguments.output:
        arguments.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
