"""Known faults of OpenVINO 2026.4, and the cases that met them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

__all__ = ["FAULTS", "add_met", "meet", "met", "summary"]

FAULTS = {
    "i64-as-i32": "the CPU plugin computes 64-bit integers in 32 bits",
    "int-as-f32": "the CPU plugin computes integer deconvolutions in f32, exact to 2**24 only",
    "f64-as-f32": "the CPU plugin computes f64 in f32",
    "saturating": "the CPU plugin saturates i8 and u8 arithmetic",
    "relu-nan": "the CPU plugin's ReLU makes 0 of a NaN",
    "bf16": "the CPU plugin rounds to bf16 more than once, or not to the nearest",
    "denormals": "the CPU plugin flushes denormal f32 numbers to zero",
    "pdpd-subtract": "the CPU plugin refuses Subtract under pdpd where an Add is taken",
    "group-of-one": "the CPU plugin refuses GroupConvolutionBackpropData of one group, where the "
    "filter comes at run time or there is one spatial axis",
    "bias-beyond-kernel": "the CPU plugin may crash on a bias where the output outreaches the "
    "kernel",
    "pointwise": "the CPU plugin ignores the pads of a kernel of one element where output and data "
    "are of one size",
    "zero-extent": "a spatial extent of 0 is taken for 1 in inference, and left uninitialised",
    "integer-pads": "the CPU plugin adds memory that it did not write in strided deconvolutions of "
    "signed codes with pads",
    "pad-fusion": "a Pad before a strided deconvolution may be fused with the wrong amount",
}
"""Tests that meet one name it, and follow the document."""

_met: Counter[tuple[str, str]] = Counter()


def meet(fault: str, what: str = "met") -> None:
    """Count a case that meets a fault; `what` is OpenVINO's behaviour, for the summary."""
    assert fault in FAULTS, fault
    _met[fault, what] += 1


def met() -> list[tuple[str, str, int]]:
    """Return each fault, OpenVINO's behaviour, and the number of cases."""
    return [(*key, count) for key, count in sorted(_met.items())]


def add_met(counts: Iterable[tuple[str, str, int]]) -> None:
    """Add the faults that another process met."""
    for fault, what, count in counts:
        _met[fault, what] += count


def summary() -> list[str]:
    """Return one line for each fault that was met."""
    return [f"{fault}: {what} in {count} cases ({FAULTS[fault]})" for fault, what, count in met()]
