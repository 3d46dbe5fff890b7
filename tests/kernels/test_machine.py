"""Planning for a processor: a pure function of the processor's description of itself."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np
import pytest

from deconv_ir.errors import SettingError
from deconv_ir.kernels import pack_deconvolution
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import Algorithm
from deconv_ir.kernels.native import CompiledKernel
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime.cpu import (
    MACHINES,
    Machine,
    Processor,
    current_machine,
    instruction_set,
    machine_of,
    may_hide_threads,
    threads_of_a_core,
)
from deconv_ir.kernels.runtime.extension import compiled_module

CPUINFO = Path("/proc/cpuinfo")
needs_extension = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
AMD, INTEL = "AuthenticAMD", "GenuineIntel"


# Families, models and execution units: AMD's "Software Optimization Guide for the Zen 4 / Zen 5
# Microarchitecture", section "Floating-Point Unit"; Intel's "Optimization Reference Manual".
@pytest.mark.parametrize(
    ("processor", "isa", "expected"),
    [
        (Processor(AMD, 0x17, 0x01, 512 << 10, 8 << 20), "avx2", MACHINES["zen1"]),
        (Processor(AMD, 0x17, 0x31, 512 << 10), "avx2", MACHINES["zen3"]),
        (Processor(AMD, 0x19, 0x21, 512 << 10), "avx2", MACHINES["zen3"]),
        (Processor(AMD, 0x19, 0x61, 1 << 20), "avx512", MACHINES["zen4"]),
        (Processor(AMD, 0x1A, 0x02, 1 << 20), "avx512", MACHINES["zen5"]),
        (Processor(AMD, 0x1A, 0x44, 1 << 20), "avx512", MACHINES["zen5"]),
        (Processor(AMD, 0x1A, 0x24, 1 << 20), "avx512", Machine("avx512", 1 << 20, True)),
        (Processor(AMD, 0x1A, 0x60, 1 << 20), "avx512", Machine("avx512", 1 << 20, True)),
        (Processor(INTEL, 6, 0x55, 1 << 20), "avx512", MACHINES["skylake-x"]),
        (Processor(INTEL, 6, 0x8F, 2 << 20), "avx512", MACHINES["sapphire-rapids"]),
        (
            Processor(INTEL, 6, 0x8C, 1280 << 10),
            "avx512",
            Machine("avx512", 1280 << 10, True, slow_pairs=True),
        ),
        (Processor(INTEL, 6, 0x3C, 256 << 10), "avx2", MACHINES["small"]),
        # Restricted to AVX2, a Zen 4 does not use long vectors: nothing is halved.
        (Processor(AMD, 0x19, 0x61, 1 << 20), "avx2", Machine("avx2", 1 << 20)),
        # Built with long vectors lowered to pairs of short ones.
        (
            Processor(INTEL, 6, 0x55, 1 << 20, lowered=True),
            "avx512",
            Machine("avx512", 1 << 20, True, slow_pairs=True),
        ),
        # Unknown processors: full-width vectors, and a small cache where none is reported.
        (Processor("HygonGenuine", 0x18, 1, 512 << 10), "avx2", Machine("avx2", 512 << 10)),
        (Processor(AMD, 0x40, 0x21, 3 << 20), "avx512", Machine("avx512", 3 << 20)),
        (Processor(), "baseline", Machine("baseline", 256 << 10)),
        (Processor(level2_bytes=-1), "avx512", Machine("avx512", 256 << 10)),
        # A cache of more than 32 MiB is shared with too many other cores.
        (Processor(level2_bytes=1 << 20, level3_bytes=96 << 20), "avx512", MACHINES["zen5"]),
        (Processor(level2_bytes=1 << 20, level3_bytes=-1), "avx512", MACHINES["zen5"]),
    ],
    ids=str,
)
def test_which_machine_a_processor_is(processor: Processor, isa: str, expected: Machine) -> None:
    # Whether it has the instructions for bytes and for bf16 is asked where they are used.
    assert machine_of(processor, isa) == expected._replace(has_dots=True, has_pairs=True)


@needs_extension
@pytest.mark.skipif(
    not CPUINFO.exists() or platform.machine() != "x86_64",
    reason="no Linux to tell, or an emulator that shows the processor below it",
)
def test_what_the_processor_says_is_read_as_linux_reads_it() -> None:
    lines = CPUINFO.read_text().partition("\n\n")[0].splitlines()
    told = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    processor = Processor(**compiled_module().processor())
    assert processor.vendor == told.get("vendor_id", "")
    assert processor.family == int(told.get("cpu family", 0))
    assert processor.model == int(told.get("model", 0))
    assert processor.is_virtual == ("hypervisor" in told.get("flags", "").split())
    size = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    if size.exists() and processor.level3_bytes:
        assert processor.level3_bytes == int(size.read_text().strip().removesuffix("K")) << 10


def test_a_machine_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECONV_IR_MACHINE", "zen")
    with pytest.raises(SettingError, match="DECONV_IR_MACHINE is 'zen'; expected one of zen1, "):
        current_machine()


@needs_extension
@pytest.mark.parametrize("name", MACHINES)
def test_the_code_that_runs_is_the_best_that_both_have(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("DECONV_IR_MACHINE", name)
    assert current_machine() is MACHINES[name]
    order = ["baseline", "avx2", "avx512"]
    here = compiled_module().isas()
    allowed = order[: order.index(MACHINES[name].instruction_set) + 1]
    assert instruction_set() == [isa for isa in allowed if isa in here][-1]


def told(monkeypatch: pytest.MonkeyPatch, machine: Machine, layer: tuple[int, ...]) -> dict:
    """Describe the run of a layer of 5 x 5 taps on 64 x 96 positions, on a given machine."""
    monkeypatch.setitem(MACHINES, "injected", machine)
    monkeypatch.setenv("DECONV_IR_MACHINE", "injected")
    kernel = pack_deconvolution(
        np.ones((*layer, 5, 5), np.float32), strides=(1, 1), dilations=(1, 1), algorithm="direct"
    )
    shapes = (1, layer[0], 64, 96), (1, layer[1], 64, 96)
    return kernel.plan(shapes[0], (2, 2), shapes[1][2:]).details


@needs_extension
def test_halved_vectors_take_twice_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Halved(Machine):
        def multiply_adds(self, instruction_set: str) -> float:
            return 1.0

    # The cost is dominated by products.
    slow, fast = (
        told(monkeypatch, make("avx512", 1 << 20), (96, 96))["cycles"] for make in (Halved, Machine)
    )
    assert 1.6 < slow / fast < 2.1


@needs_extension
def test_weights_beyond_the_third_level_cache_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, fast = (
        told(monkeypatch, Machine("avx2", 1 << 19, level3_bytes=bytes_), (256, 256))["cycles"]
        for bytes_ in (8 << 20, 32 << 20)
    )
    assert slow > fast


@needs_extension
def test_tiles_follow_the_second_level_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (
        told(monkeypatch, Machine("baseline", bytes_), (512, 8)) for bytes_ in (1 << 18, 1 << 21)
    )
    assert small["bytes"] < large["bytes"]


# The list, the threads of a core that this process may use, and whether a virtual machine may hide
# threads.
SIBLINGS = [
    ("0\n", 1, True),
    ("0,1\n", 2, False),
    ("0-1\n", 2, False),
    ("0-3\n", 2, False),
    ("0,64\n", 1, False),
    ("x\n", 1, True),
    (None, 1, True),
]


@pytest.mark.parametrize(("text", "threads", "hides"), SIBLINGS)
def test_threads_of_one_core_share_its_cache(
    text: str | None,
    threads: int,
    hides: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The format of a list of processors: Linux, Documentation/admin-guide/cputopology.rst."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    folder = tmp_path / "cpu0/topology"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "thread_siblings_list").write_text(text)
    virtual = Processor(is_virtual=True)
    assert threads_of_a_core(str(tmp_path)) == threads
    assert may_hide_threads(virtual, str(tmp_path)) is hides
    assert not may_hide_threads(Processor(), str(tmp_path))
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert not may_hide_threads(virtual, str(tmp_path))


@pytest.mark.parametrize("name", ["zen3", "zen5"])
def test_cores_with_two_threads(name: str) -> None:
    """Half of the cache is there for each, or may be."""
    machine = MACHINES[name]
    shared, hidden = machine.shared(2), machine._replace(hides_threads=True)
    half = machine.level2_bytes // 2
    assert (machine.level2_bytes, machine.sure_level2_bytes) == (2 * half, 2 * half)
    assert (shared.level2_bytes, shared.sure_level2_bytes) == (half, half)
    assert (hidden.level2_bytes, hidden.sure_level2_bytes) == (2 * half, half)


@needs_extension
@pytest.mark.parametrize("name", ["zen3", "zen5"])
def test_hidden_threads_change_the_tiles_of_direct_sums_alone(name: str) -> None:
    """Direct sums have the tiles of half a cache, Winograd those of all of it."""
    machine = MACHINES[name]
    hidden = machine._replace(hides_threads=True)
    for use, same in ((Algorithm.DIRECT, machine.shared(2)), (Algorithm.WINOGRAD, machine)):
        expected, actual = (
            {key: value for key, value in tiled(each, use).items() if key not in DIRECT_TILES}
            for each in (same, hidden)
        )
        assert actual == expected
    assert tiled(machine, Algorithm.DIRECT) != tiled(hidden, Algorithm.DIRECT)


# A plan for Winograd describes the tiles that direct sums would have as well.
DIRECT_TILES = ("channels", "blocks", "compact", "output_vectors")


def tiled(machine: Machine, use: Algorithm) -> dict[str, object]:
    """Return the plan of a layer with tiles that fill any second-level cache."""
    weights = np.ones((56, 48, 3, 3), np.float32)
    problem = Problem.of_filter(weights.shape, (1, 1), (1, 1), 1, forward=False)
    kernel = CompiledKernel(problem, weights, None, Activation(), algorithm=use, machine=machine)
    return dict(kernel.plan((1, 56, 200, 300), (1, 1), (200, 300)).details)
