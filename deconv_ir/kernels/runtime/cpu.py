"""The processor in the terms of the cost models, for which tiles and algorithms are chosen."""

import functools
import os
from pathlib import Path
from typing import NamedTuple

from deconv_ir.errors import SettingError
from deconv_ir.kernels.runtime.extension import compiled_module

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
"""In the order of enum isa."""


_SMALLEST_CACHE = 256 << 10
"""Second-level cache of a processor that does not report its size."""


class Machine(NamedTuple):
    """The figures of a processor that planning uses."""

    instruction_set: str
    """The best one supported by the compiled kernel: ``baseline``, ``avx2`` or ``avx512``."""
    level2_bytes: int
    """The second-level cache of a core, or a thread's share of it."""
    halved: bool = False
    """Whether a multiply-add of the longest vectors uses two units of half that length."""
    level3_bytes: int = 32 << 20
    """The third-level cache that a core shares, up to the amount that helps a single program."""
    hides_threads: bool = False
    """Whether a core may run two threads that the system shows as two cores."""
    has_dots: bool = True
    """Whether products of four bytes are summed by one instruction, if this processor has it."""

    has_pairs: bool = True
    """Whether products of two bf16 are summed by one instruction, if this processor has it."""
    slow_pairs: bool = False
    """Whether that instruction begins a quarter as often as a multiply-add."""

    @property
    def sure_level2_bytes(self) -> int:
        """The second-level cache for which direct sums are planned.

        They lose more than Winograd if tiles exceed it, and less if tiles are too small:
        docs/performance-notes.md, Threads of one core.
        """
        return self.level2_bytes // (2 if self.hides_threads else 1)

    def multiply_adds(self, instruction_set: str) -> float:
        """Return the number of vector multiply-adds that a core issues per cycle.

        Examples
        --------
        >>> zen4 = MACHINES["zen4"]
        >>> zen4.multiply_adds("avx512"), zen4.multiply_adds("avx2")
        (1.0, 2.0)
        """
        return 1.0 if self.halved and instruction_set == self.instruction_set else 2.0

    def pair_products(self, instruction_set: str) -> float:
        """Return the number of vector products of pairs of bf16 that a core issues per cycle.

        Examples
        --------
        >>> MACHINES["zen5"].pair_products("avx512")
        2.0
        >>> MACHINES["sapphire-rapids"].pair_products("avx512")
        0.5
        """
        return self.multiply_adds(instruction_set) / (4 if self.slow_pairs else 1)

    def shared(self, threads: int) -> "Machine":
        """Return the machine if several threads run on each core.

        Examples
        --------
        >>> MACHINES["zen5"].shared(2) == MACHINES["zen5-shared"]
        True
        """
        return self._replace(level2_bytes=self.level2_bytes // threads)


MACHINES = {
    "zen1": Machine("avx2", 512 << 10, halved=True, level3_bytes=8 << 20, has_dots=False),
    "zen3": Machine("avx2", 512 << 10, has_dots=False),
    "zen4": Machine("avx512", 1 << 20, halved=True),
    "zen5": Machine("avx512", 1 << 20),
    "skylake-x": Machine("avx512", 1 << 20, has_dots=False, has_pairs=False, slow_pairs=True),
    "sapphire-rapids": Machine("avx512", 2 << 20, slow_pairs=True),
    "small": Machine("avx2", 256 << 10, has_dots=False),
}
# Two threads of each core, which the system shows or hides.
MACHINES["zen5-shared"] = MACHINES["zen5"].shared(2)
MACHINES["zen3-hidden"] = MACHINES["zen3"]._replace(hides_threads=True)
"""Processors by name, for DECONV_IR_MACHINE and for tests."""


class Processor(NamedTuple):
    """The processor's description (CPUID); an empty vendor and zeros if it is not available."""

    vendor: str = ""
    """For example ``AuthenticAMD``."""
    family: int = 0
    model: int = 0
    """Including its extended part, as for the family."""
    level2_bytes: int = 0
    """The second-level cache of a core."""
    level3_bytes: int = 0
    """The third-level cache that it shares with its neighbours."""
    lowered: bool = False
    """Whether the extension was built to emulate vectors of 64 bytes by two of 32."""
    is_virtual: bool = False
    """Whether a hypervisor runs the system, and may hide which processors share a core."""


# Cannon, Ice, Tiger and Rocket Lake; Intel's server processors have two units of 64 bytes.
_HALVED_INTEL = frozenset({0x66, 0x7D, 0x7E, 0x8C, 0x8D, 0xA7})


def _halved_set(processor: Processor) -> str:
    """Return the instruction set whose vectors the processor halves, or an empty string."""
    vendor, family, model = processor[:3]
    if processor.lowered:
        return "avx512"
    if vendor == "AuthenticAMD":
        if family == 0x17:
            return "avx2" if model < 0x30 else ""  # Zen and Zen+, not Zen 2
        # Zen 4, and Zen 5 of notebooks.
        is_halved = family == 0x19 or (family == 0x1A and model >> 4 in (2, 6))
    else:
        is_halved = vendor == "GenuineIntel" and family == 6 and model in _HALVED_INTEL
    return "avx512" if is_halved else ""


def machine_of(processor: Processor, instruction_set: str) -> Machine:
    """Describe a processor that has an instruction set.

    CPUID does not report whether long vectors are halved, and timing it gives a wrong answer in one
    process of a hundred; but the families are known.  Unknown families are assumed not to halve.

    Examples
    --------
    >>> machine_of(Processor("AuthenticAMD", 0x1A, 0x44, 1 << 20), "avx512") == MACHINES["zen5"]
    True
    >>> machine_of(Processor(), "baseline") == Machine("baseline", 256 << 10)
    True
    """
    level2, level3 = processor.level2_bytes, processor.level3_bytes
    machine = Machine(
        instruction_set,
        level2 if level2 > 0 else _SMALLEST_CACHE,
        _halved_set(processor) == instruction_set,
        slow_pairs=instruction_set == "avx512" and processor.vendor == "GenuineIntel",
    )
    return machine._replace(level3_bytes=level3) if 0 < level3 < machine.level3_bytes else machine


@functools.cache
def _detected() -> Machine:
    module = compiled_module()
    if module is None:
        return machine_of(Processor(), "baseline")
    # Cached: on a virtual machine CPUID takes microseconds.
    processor = Processor(**module.processor())
    machine = machine_of(processor, module.isas()[-1]).shared(threads_of_a_core())
    return machine._replace(hides_threads=may_hide_threads(processor))


_TOPOLOGY = "/sys/devices/system/cpu"


def threads_of_a_core(folder: str = _TOPOLOGY) -> int:
    """Return how many of the processors that this process may use are threads of one core.

    They share its caches.  1 where the system does not say so, as virtual machines often do not.

    Examples
    --------
    >>> threads_of_a_core("/no/such/folder")
    1
    """
    return max(1, len(_siblings(folder) & _allowed()))


def may_hide_threads(processor: Processor, folder: str = _TOPOLOGY) -> bool:
    """Whether threads of one core may be shown as cores, as in many virtual machines.

    It does not depend on the processors that this process may use, since results depend on the
    algorithm, and that on caches.

    Examples
    --------
    >>> may_hide_threads(Processor(is_virtual=False))
    False
    """
    return processor.is_virtual and (os.cpu_count() or 1) > 1 and len(_siblings(folder)) < 2


def _allowed() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}


def _siblings(folder: str) -> set[int]:
    """Return the threads of the core of a processor that this process may use; empty: unknown."""
    try:
        path = Path(folder, f"cpu{min(_allowed())}/topology/thread_siblings_list")
        parts = [part.split("-") for part in path.read_text("ascii").strip().split(",")]
        return {n for ends in parts for n in range(int(ends[0]), int(ends[-1]) + 1)}
    except (OSError, ValueError):
        return set()


def current_machine() -> Machine:
    """Return the machine to plan for: this one, or the one named by DECONV_IR_MACHINE."""
    wanted = os.environ.get("DECONV_IR_MACHINE", "")
    if not wanted:
        return _detected()
    if wanted not in MACHINES:
        raise SettingError(
            f"DECONV_IR_MACHINE is {wanted!r}; expected one of {', '.join(MACHINES)}"
        )
    return MACHINES[wanted]


def instruction_set() -> str:
    """Return the instruction set in use: the machine's, or the one named by DECONV_IR_ISA."""
    return _choose_isa(_available(), os.environ.get("DECONV_IR_ISA", ""), current_machine())


@functools.cache
def _available() -> tuple[str, ...]:
    module = compiled_module()
    return () if module is None else tuple(module.isas())


def isa_number() -> int:
    """Return the number of the instruction set in use, for the compiled kernels."""
    return INSTRUCTION_SETS.index(instruction_set())


def _choose_isa(available: tuple[str, ...], wanted: str, machine: Machine) -> str:
    if wanted:
        if wanted not in available:
            shown = ", ".join(available) or "none"
            raise SettingError(f"DECONV_IR_ISA is {wanted!r}; available here: {shown}")
        return wanted
    order = INSTRUCTION_SETS.index
    fitting = [isa for isa in available if order(isa) <= order(machine.instruction_set)]
    return max(fitting, key=order, default="")


def has_dots() -> bool:
    """Whether products of four bytes are summed by one instruction: VNNI, for example."""
    module = compiled_module()
    return module is not None and current_machine().has_dots and bool(module.has_dots(isa_number()))


def has_pairs() -> bool:
    """Whether products of two bf16 are summed by one instruction: AVX-512 BF16."""
    module = compiled_module()
    return (
        module is not None
        and instruction_set() == "avx512"
        and current_machine().has_pairs
        and bool(module.has_pairs())
    )


def pairs_instruction_set() -> str:
    """Return the set that sums products of two bf16, by its instruction or as emulated."""
    return instruction_set() if has_pairs() else INSTRUCTION_SETS[0]
