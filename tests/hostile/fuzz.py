"""Coverage-guided fuzzing with atheris: `make fuzz SECONDS=60`, `make fuzz RUNS=2000`.

    python tests/hostile/fuzz.py TARGET FOLDER --seconds 60
    python tests/hostile/fuzz.py TARGET FOLDER --runs 2000

The second form is for CI: seeded, it tries the same inputs each time on the same code.  It starts
from corpus/TARGET and the seeds below, keeps its corpus in FOLDER, and saves an input that breaks a
promise as FOLDER/crash-*.  A finding becomes a file in corpus/TARGET, where
`tests/hostile/test_corpus.py` runs it from then on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import atheris

with atheris.instrument_imports(include=["deconv_ir", "deconv_cli"]):
    from hostile.targets import CORPUS, TARGETS

    # atheris must also instrument the modules that a target imports lazily.
    for _name in sorted(TARGETS):
        TARGETS[_name](b"")

MAX_LENGTH = 1 << 14
SECONDS_PER_INPUT = 2
MEGABYTES = 512


def write_seeds(target: str, folder: Path) -> None:
    """Put valid inputs, from the samples and the worked examples, into a folder."""
    from hostile.seeds import SAMPLES, seeds

    found: list[bytes] = []
    if target == "xml":
        found = [seed.xml for seed in seeds() if len(seed.xml) <= MAX_LENGTH]
    elif target == "npy":
        found = [p.read_bytes() for p in sorted(SAMPLES.rglob("*.npy"))]
        found = [data for data in found if len(data) <= 2048][:100]
    elif target == "attributes":
        from deconv_ir.ops import all_operations
        from deconv_ir.ops.base import attributes_of
        from deconv_ir.ops.examples import parse_example

        for number, operation in enumerate(all_operations()):
            for text in operation.examples:
                written = parse_example(text).attributes
                values = [written.get(a.name, "") for a in attributes_of(operation)]
                found.append(bytes([number % 256]) + "\0".join(values).encode())
    elif target == "shapes":
        found = [b"1,3,?", b"[1..8,..5,3..]", b"...", b"-1", b"", b"9223372036854775807"]
    else:
        found = [p.read_bytes()[:MAX_LENGTH] for p in sorted(SAMPLES.rglob("*.md"))]
        found += [p.read_bytes() for p in sorted((SAMPLES / "documents").glob("*.xml"))]
    for number, data in enumerate(found):
        (folder / f"seed-{number:04}").write_bytes(data)


def main() -> None:
    """Fuzz one target, for some seconds or a number of inputs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("folder", type=Path)
    bound = parser.add_mutually_exclusive_group(required=True)
    bound.add_argument("--seconds", type=int)
    bound.add_argument("--runs", type=int)
    options = parser.parse_args()
    target, folder = options.target, options.folder
    learned, given = folder / target, folder / f"{target}-seeds"
    for directory in (learned, given):
        directory.mkdir(parents=True, exist_ok=True)
    write_seeds(target, given)
    known = CORPUS / target
    atheris.Setup(
        [
            "fuzz",
            *(
                [f"-max_total_time={options.seconds}", f"-timeout={SECONDS_PER_INPUT}"]
                if options.seconds
                else [f"-runs={options.runs}", "-seed=1", f"-timeout={10 * SECONDS_PER_INPUT}"]
            ),
            f"-rss_limit_mb={MEGABYTES}",
            f"-max_len={MAX_LENGTH}",
            f"-artifact_prefix={folder}/crash-{target}-",
            "-print_final_stats=1",
            "-verbosity=0",
            *map(str, (learned, given, *([known] if known.is_dir() else []))),
        ],
        TARGETS[target],
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
