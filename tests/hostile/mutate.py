"""Mutated IRs through load, lint and run, in child processes with bounds.

A mutation knows what an IR is made of: attributes, dims, edges, layers and the
bytes of constants are changed, removed, copied and exchanged, so that most of
the files get past the XML parser.  Each of them must give a result or a
`DeconvError`; a traceback, a dead process, more than `SECONDS` of CPU time (or
five times as long without a word) or more memory than `MEMORY` is a failure,
and its files are kept.

    python tests/hostile/mutate.py --count 100000 --seed 0

prints the figures of docs/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.seeds import Seed, seeds

SECONDS = 2.0
MEMORY = 512 << 20
MAX_INPUT_ELEMENTS = 1 << 14
MAX_TEXT = 1 << 16
BATCH = 500

INTEGERS = (
    *("0", "1", "2", "3", "4", "5", "7", "8", "-1", "-2", "16", "255", "256", "65537"),
    *("1000000000", "2147483647", "2147483648", "-2147483648", "4294967296"),
    *("4611686018427387904", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "18446744073709551616", "99999999999999999999999", "1" * 5000),
)
WORDS = (
    *("", " ", "?", "...", "-", "--1", "+1", "1.5", "1e9", "nan", "inf", "-inf", "0x10", "1_0"),
    *("true", "false", "f32", "f16", "bf16", "i4", "u1", "nf4", "i64", "boolean", "dynamic"),
    *("string", "explicit", "valid", "same_upper", "same_lower", "None", "NXC", "XIO", "IOX"),
    *("1..", "..5", "1..8", "8..1", "\u0661", "\u00e9", "&#0;", "&#x10FFFF;", "&lt;", "\t", "\n"),
    *("numpy", "pytorch", "bidirectional", "../../etc/passwd", "/dev/zero", "1,,2", ",", "1;2"),
)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_DIM = re.compile(r"<dim>([^<]*)</dim>")
_LAYER = re.compile(r"<layer .*?</layer>\s*", re.DOTALL)
_EDGE = re.compile(r"<edge [^>]*/>\s*")
_PORT = re.compile(r"<port [^>]*?(?:/>|>.*?</port>)\s*", re.DOTALL)
_TYPE = re.compile(r'type="([^"]*)" version="([^"]*)"')


class Mutator:
    """Makes mutated IRs; the same ones for the same numbers."""

    def __init__(self) -> None:
        self.seeds = seeds()
        self.types = sorted({m for s in self.seeds for m in _TYPE.findall(s.xml.decode())})
        self.values = sorted(
            {value for s in self.seeds for _, value in _ATTRIBUTE.findall(s.xml.decode())}
        )

    def make(self, seed: int, number: int) -> Seed:
        """Return the IR of that number."""
        draw = random.Random(f"{seed}/{number}")
        start = draw.choice(self.seeds)
        text, weights = start.xml.decode(), bytearray(start.weights)
        for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 5, 8))):
            text = draw.choices(_TEXT_MUTATIONS, _WEIGHTS)[0](self, draw, text)
            if weights and draw.random() < 0.2:
                _mutate_weights(draw, weights)
            if len(text) > MAX_TEXT:
                break
        data = text.encode("utf-8", "surrogatepass")
        if draw.random() < 0.05:
            data = _mutate_bytes(draw, data)
        return Seed(start.name, data, bytes(weights))

    def value(self, draw: random.Random, old: str) -> str:
        """Return a value in place of another."""
        kind = draw.random()
        if "," in old and kind < 0.5:
            parts = old.split(",")
            place = draw.randrange(len(parts))
            change = draw.random()
            if change < 0.6:
                parts[place] = draw.choice(INTEGERS)
            elif change < 0.75:
                parts.insert(place, draw.choice(INTEGERS))
            elif change < 0.9:
                del parts[place]
            else:
                parts *= draw.choice((2, 20, 2000))
            return ",".join(parts)
        if kind < 0.55:
            return draw.choice(INTEGERS)
        if kind < 0.7:
            return draw.choice(WORDS)
        if kind < 0.9:
            return draw.choice(self.values)
        return ",".join(draw.choice(INTEGERS) for _ in range(draw.choice((1, 2, 3, 4, 9))))


def _attribute(mutator: Mutator, draw: random.Random, text: str) -> str:
    matches = list(_ATTRIBUTE.finditer(text))
    if not matches:
        return text
    match = draw.choice(matches)
    change = draw.random()
    if change < 0.8:
        start, end, new = *match.span(2), mutator.value(draw, match[2])
    elif change < 0.9:
        start, end, new = *match.span(), ""
    else:
        start, end, new = *match.span(1), draw.choice(matches)[1]
    return text[:start] + new + text[end:]


def _data(mutator: Mutator, draw: random.Random, text: str) -> str:
    """Change an attribute of a <data>, which is where operations read."""
    places = list(re.finditer(r"<data [^>]*>", text))
    if not places:
        return _attribute(mutator, draw, text)
    place = draw.choice(places)
    return text[: place.start()] + _attribute(mutator, draw, place[0]) + text[place.end() :]


def _dim(mutator: Mutator, draw: random.Random, text: str) -> str:
    matches = list(_DIM.finditer(text))
    if not matches:
        return text
    match = draw.choice(matches)
    change = draw.random()
    if change < 0.6:
        new = f"<dim>{mutator.value(draw, match[1])}</dim>"
    else:
        new = draw.choice(("", match[0] * 2, match[0] * 70, "<dim/>", "<dim><dim>1</dim></dim>"))
    return text[: match.start()] + new + text[match.end() :]


def _element(pattern: re.Pattern[str]) -> Callable[[Mutator, random.Random, str], str]:
    """Remove, copy, exchange or wrap elements of a kind."""

    def mutate(mutator: Mutator, draw: random.Random, text: str) -> str:
        matches = list(pattern.finditer(text))
        if not matches:
            return text
        match, other = draw.choice(matches), draw.choice(matches)
        new = draw.choice(
            ("", match[0] * 2, other[0], f"<x>{match[0]}</x>", match[0] * 40, f"<!--{other[0]}-->")
        )
        return text[: match.start()] + new + text[match.end() :]

    return mutate


def _layer_type(mutator: Mutator, draw: random.Random, text: str) -> str:
    matches = list(_TYPE.finditer(text))
    if not matches:
        return text
    match = draw.choice(matches)
    kind, version = draw.choice(mutator.types)
    return f'{text[: match.start()]}type="{kind}" version="{version}"{text[match.end() :]}'


def _characters(mutator: Mutator, draw: random.Random, text: str) -> str:
    at = draw.randrange(len(text) + 1)
    change = draw.random()
    if change < 0.3:
        return text[:at]
    if change < 0.6:
        return text[:at] + text[at + draw.choice((1, 2, 10, 100)) :]
    new = draw.choice(
        (
            "<",
            ">",
            "&",
            '"',
            "]]>",
            "<![CDATA[",
            "<!--",
            "-->",
            "<?x?>",
            "<a>",
            "</a>",
            "\0",
            "<a/>",
        )
    )
    return text[:at] + new + text[at:]


def _mutate_weights(draw: random.Random, weights: bytearray) -> None:
    change = draw.random()
    if change < 0.3:
        del weights[draw.randrange(len(weights)) :]
    elif change < 0.6:
        value = int(draw.choice(INTEGERS[:-1])) & (2**64 - 1)
        at = draw.randrange(len(weights)) // 8 * 8
        weights[at : at + 8] = value.to_bytes(8, "little")
    else:
        for _ in range(draw.choice((1, 4, 32))):
            weights[draw.randrange(len(weights))] = draw.randrange(256)
    if not weights:
        weights += b"\0"


def _mutate_bytes(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data or b" ")
    change = draw.random()
    if change < 0.3:
        return data.decode("utf-8", "replace").encode(draw.choice(("utf-16", "utf-32", "utf-7")))
    for _ in range(draw.choice((1, 3, 30))):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


_TEXT_MUTATIONS: Sequence[Callable[[Mutator, random.Random, str], str]] = (
    _attribute,
    _data,
    _dim,
    _element(_LAYER),
    _element(_EDGE),
    _element(_PORT),
    _layer_type,
    _characters,
)
_WEIGHTS = (25, 30, 12, 6, 6, 6, 10, 5)


@dataclass
class Figures:
    """What a number of mutated IRs came to."""

    tried: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    slowest: float = 0.0
    slowest_number: int = -1
    memory: int = 0
    """Largest resident size of a child, in bytes."""


def try_one(path: Path) -> str:
    """Take one IR all the way; return how far it came.

    Raises
    ------
    Exception
        Anything but a `DeconvError`: a failure.
    """
    import deconv_ir
    from deconv_ir.arrays.fitting import random_array

    for finding in deconv_ir.lint(path, severity="info", deep=True):
        _one_line(str(finding))
    try:
        model = deconv_ir.load(path, warn=False)
    except deconv_ir.DeconvError as error:
        _one_line(str(error))
        return f"refused: {error.rule or type(error).__name__}"
    inputs = {}
    for index, (name, port) in enumerate(model.inputs.items()):
        try:
            if _elements(port.shape) > MAX_INPUT_ELEMENTS:
                return "loaded, inputs too large to feed"
            inputs[name] = random_array(port.shape, port.element_type, 0, index)
        except (deconv_ir.DeconvError, TypeError) as error:
            return f"loaded, no input: {type(error).__name__}"
    try:
        model.run(inputs)
    except deconv_ir.DeconvError as error:
        _one_line(str(error))
        return f"run refused: {error.rule or type(error).__name__}"
    return "ran"


def _one_line(text: str) -> None:
    if "\n" in text or len(text) > 4000:
        raise AssertionError(f"a message of {len(text)} characters: {text[:500]!r}")


def _elements(shape: Any) -> int:
    count = 1
    for dim in shape or ():
        count *= max(1, dim if isinstance(dim, int) else dim.min)
    return count


class TooSlowError(BaseException):
    """The time for one IR is over."""


def _alarm(*_: object) -> None:
    raise TooSlowError


def _child(mutator: Mutator, seed: int, numbers: Sequence[int], folder: Path, report: int) -> None:
    """Try some IRs, and write a line of JSON for each before and after."""
    signal.signal(signal.SIGPROF, _alarm)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path = folder / "model.xml"
    for number in numbers:
        made = mutator.make(seed, number)
        path.write_bytes(made.xml)
        path.with_suffix(".bin").write_bytes(made.weights)
        _say(report, {"number": number})
        started = time.process_time()
        detail = ""
        # Of CPU: who else has the machine must not decide.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            outcome = try_one(path)
        except TooSlowError:
            outcome, detail = "HANG", traceback.format_exc(limit=-12)
        except BaseException as error:
            outcome, detail = f"TRACEBACK {type(error).__name__}", traceback.format_exc(limit=-12)
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        line = {"outcome": outcome, "detail": detail, "seconds": seconds, "memory": peak}
        _say(report, line)


def _say(report: int, line: dict[str, Any]) -> None:
    data = (json.dumps(line) + "\n").encode()
    while data:
        data = data[os.write(report, data) :]


def run_batch(mutator: Mutator, seed: int, numbers: Sequence[int], figures: Figures) -> None:
    """Try some IRs in child processes; after one that died, a new one goes on."""
    remaining = list(numbers)
    while remaining:
        with tempfile.TemporaryDirectory(prefix="deconv-ir-mutate-") as folder:
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(read)
                try:
                    _child(mutator, seed, remaining, Path(folder), write)
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(0)
            os.close(write)
            done, current = _listen(pid, read, seed, figures)
            os.close(read)
            _, status = os.waitpid(pid, 0)
        if current is not None:  # it died, or was killed, over this one
            outcome = f"DEAD signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "DEAD"
            _count(figures, seed, current, {"outcome": outcome, "seconds": 0.0, "memory": 0})
            done += 1
        elif not done:
            raise RuntimeError(f"the child ended before number {remaining[0]}: status {status}")
        remaining = remaining[done:]


def _listen(pid: int, read: int, seed: int, figures: Figures) -> tuple[int, int | None]:
    """Read what a child says until it ends; kill it where it hangs in C code."""
    import select

    buffer = b""
    done = 0
    current: int | None = None
    while True:
        ready, _, _ = select.select([read], [], [], 5 * SECONDS)
        if not ready:
            os.kill(pid, signal.SIGKILL)
        chunk = os.read(read, 1 << 16)
        if not chunk:
            return done, current
        *lines, buffer = (buffer + chunk).split(b"\n")
        for raw in lines:
            line = json.loads(raw)
            if "number" in line:
                current = line["number"]
            else:
                assert current is not None
                _count(figures, seed, current, line)
                done += 1
                current = None


def _count(figures: Figures, seed: int, number: int, line: dict[str, Any]) -> None:
    figures.tried += 1
    figures.outcomes[line["outcome"]] += 1
    if line["outcome"].isupper() or line["outcome"].startswith(("HANG", "TRACEBACK", "DEAD")):
        figures.failures.append({"seed": seed, "number": number, **line})
    if line["seconds"] > figures.slowest:
        figures.slowest, figures.slowest_number = line["seconds"], number
    figures.memory = max(figures.memory, line["memory"])


def try_many(seed: int, first: int, count: int) -> Figures:
    """Try the IRs of these numbers."""
    import numpy  # noqa: F401 - the children inherit it
    import scipy.special  # noqa: F401

    import deconv_ir

    assert deconv_ir.lint
    mutator = Mutator()
    figures = Figures()
    for start in range(first, first + count, BATCH):
        numbers = range(start, min(start + BATCH, first + count))
        run_batch(mutator, seed, numbers, figures)
    return figures


def main() -> int:
    """Try many IRs, and print the figures; 1 where one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files of failures")
    parser.add_argument("--show", type=int, default=20, help="how many failures to show")
    options = parser.parse_args()
    figures = try_many(options.seed, options.first, options.count)
    for failure in figures.failures[: options.show]:
        print(f"FAILED seed {failure['seed']} number {failure['number']}: {failure['outcome']}")
        print(failure.get("detail", ""))
        if options.keep:
            made = Mutator().make(failure["seed"], failure["number"])
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{failure['number']}.xml").write_bytes(made.xml)
            (options.keep / f"{failure['number']}.bin").write_bytes(made.weights)
    for outcome, count in figures.outcomes.most_common():
        print(f"{count:8} {outcome}")
    print(
        f"tried {figures.tried}, failures {len(figures.failures)}, "
        f"slowest {figures.slowest * 1000:.0f} ms (number {figures.slowest_number}), "
        f"largest resident memory {figures.memory / 2**20:.0f} MiB"
    )
    return 1 if figures.failures else 0


if __name__ == "__main__":
    sys.exit(main())
