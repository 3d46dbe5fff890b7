"""The options of deconv-run as one record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..shared.common import STREAM, Mistake
from ..shared.options import (
    FILE,
    IMAGE_SUFFIXES,
    OF_AN_IR,
    PREPROCESSING,
    SEVERAL,
    Command,
    IntegerRange,
    NumberRange,
    Preprocessing,
    argument,
    completer,
    flag,
    given,
    input_arrays,
    input_shapes,
    limit_options,
    listing_option,
    option,
    parse_size,
    random_inputs,
    semantics,
    tolerance,
)

if TYPE_CHECKING:
    from deconv_ir import Overrides
    from deconv_ir.arrays.casting import Cast
    from deconv_ir.limits import Limits

OPTIONAL_VALUES: dict[str, Callable[[str], bool]] = {
    "--profile": lambda word: word.endswith(".json"),
    "--batch": str.isdecimal,
    "--cast": lambda _: False,
}
"""Options whose value may be left out -> whether the next word is one; else ``--cast=wrap``."""

_VALUES = {
    "--profile": "--profile takes a name that ends with .json",
    "--batch": "--batch takes a number",
    "--cast": "--cast takes its value as in --cast=wrap",
}
FILE_OPTIONS = ("--input", "--expect")
ARRAY_SUFFIXES = (".npy", ".npz", *IMAGE_SUFFIXES)

OPTION_NAMES = {
    "output_layers": "output-layer",
    "dump_all": "all",
    "constants": "set",
    "shapes": "shape",
}
"""Fields whose option has another name."""

OVERRIDES = ("in_shapes", "op_attrs", "op_kind", "mb", "dt")
"""Options that change a oneDNN Graph file."""
CLUSTER = ("workers", "scheduler", "scheduler_file")
FOR_ONE_RUN = ("dump", "save_inputs", "explain_plan")
FOR_MANY_RUNS = ("batch", "resume", "fail_fast")
INFO_HINT = "cannot be combined with --info, which is about the whole model"


def cast_mode(value: str | bool) -> Cast:
    """Parse --cast: `True` for the option without a value, ``wrap`` for that value."""
    if value is False or value == "wrap":
        return value
    if value:
        raise click.BadParameter(f"{value!r} is not 'wrap' (write --cast, or --cast=wrap)")
    return True


def batch_size(value: str) -> int:
    """Parse --batch: number of files of a batch; 0, for the option without a value: all files."""
    if value and (not value.isdecimal() or int(value) < 1):
        raise click.BadParameter(f"{value!r} is not a positive integer")
    return int(value or 0)


def _override(metavar: str, text: str) -> Any:
    return option(metavar, f"oneDNN Graph file: {text}", default="")


def _list_operations() -> None:
    from deconv_ir.formats.onednn_json.kinds import kinds_table
    from deconv_ir.ops.table import operations_table

    from ..shared.tables import print_table

    table = [
        [row.type, ", ".join(row.versions), row.element_types, ", ".join(row.attributes)]
        for row in operations_table()
    ]
    headers = ["operation", "versions", "element types", "attributes"]
    print_table(table, headers, ("left", "left", "left", "left"))
    click.echo()
    table = [[row.kind, row.inputs, ", ".join(row.attributes)] for row in kinds_table()]
    print_table(table, ["oneDNN Graph", "types of inputs", "attributes"], ("left", "left", "left"))


class RunRequest(Preprocessing, after="shapes"):
    """The options of deconv-run."""

    model: str = argument("MODEL")
    inputs: tuple[str, ...] = input_arrays(
        "Array for an input of the model, as .npy, or an image (.png, .jpg; extra 'samples'); "
        "without a name, in order. '-': standard input. A .npz file has arrays for all inputs "
        "that it names. A folder, a pattern such as "
        "'frames/*.npy', or several files: the model is run on each."
    )
    output: str | None = option(
        "FILE|DIR",
        "Where outputs go: a .npy file, a .npz file for all of them, a directory, or '-' for "
        "standard output. Default: one .npy per output, in this directory (none with --expect).",
    )
    dump: str | None = option(
        "DIR",
        "Also write every inner tensor to DIR, with a manifest of names; deconv-diff --against DIR "
        "reads it. Layers run one by one, without fusion, and not in bf16.",
    )
    dump_all: bool = flag("With --dump: constants, and tensors of bodies, too.", "--all")
    no_output: bool = flag("Write no outputs, only print the summary.")
    weights: str | None = option(
        "FILE.bin",
        "The weights. Default: the .bin next to the model; a model on standard input has none.",
        type=FILE,
    )
    semantics: str = semantics()
    accuracy: str = option(
        None,
        "direct: sum convolutions directly, without Winograd; float64: compute all layers in f64; "
        "bf16: round data and weights to bf16 where that is faster (docs/numerics.md).",
        "--accuracy",
        "--precision",
        type=click.Choice(["fast", "direct", "float64", "bf16"]),
        default="fast",
        show_default=True,
    )
    rounded: bool = flag(
        "With --accuracy float64: round the outputs once, to their element types.", "--round"
    )
    layer: str | None = option(
        "NAME_OR_ID", "Run this layer alone.", shell_complete=completer("complete_layers")
    )
    until: str | None = option(
        "LAYER",
        "Run only the layers that LAYER needs, and return its outputs. "
        "LAYER is a tensor name, a layer name or a layer id; in a body LAYER/BODY/NAME, with "
        "an axis in front for the runs of the body.",
        shell_complete=completer("complete_tensors"),
    )
    output_layers: tuple[str, ...] = option(
        "LAYER",
        "Return this inner tensor; run only the layers that it needs. Repeatable.",
        "--output-layer",
        multiple=True,
        shell_complete=completer("complete_tensors"),
    )
    strict: bool = flag("Treat wrong declared dims as errors.")
    random_inputs: int | None = random_inputs(": floats are standard normal, integers from 0 to 9")
    shapes: tuple[str, ...] = input_shapes(
        "Shape of an input, as in data=2,3,224,224 or data=?,3,224,224: that of dynamic dims, for "
        "--random-inputs, --explain-plan and --info; other static shapes reshape the model. "
        "Repeatable."
    )
    constants: tuple[str, ...] = option(
        "NAME=FILE.npy",
        "Another array for a constant of the model, by the name of its layer or tensor, or "
        "LAYER/BODY/NAME in a body; --cast converts it. Repeatable.",
        "--set",
        multiple=True,
    )
    save_inputs: str | None = option(
        "FILE|DIR",
        "Also write the arrays of the inputs: a .npz file, a .npy file or a directory.",
    )
    expect: tuple[str, ...] = option(
        "[NAME=]FILE",
        "Reference for an output, as .npy; a .npz file has one for each output that it names. "
        "With many inputs: a folder or a pattern, paired by name. "
        "Exit code 1 when out of tolerance.",
        multiple=True,
    )
    rtol: float = tolerance(1e-5)
    atol: float = tolerance(1e-6)
    cast: Cast = option(
        "[=wrap]",
        "Convert inputs of another element type where every value fits, up to rounding of floats; "
        "=wrap: in any case (integers modulo 2^bits, floats to infinity).",
        type=cast_mode,
        default=False,
    )
    force: bool = flag("Overwrite output files.")
    batch: int | None = option(
        "[N]",
        "With many files: stack them along the first axis, N at a time (default: all).",
        type=batch_size,
    )
    resume: bool = flag(
        "With many files: keep the outputs that this model computed from these inputs with "
        "these options, compute the others."
    )
    fail_fast: bool = flag("With many files: stop at the first bad file.")
    repeat: int | None = option(
        "N",
        "Run N times; print the 50th, 90th and 99th percentile, mean and range of the latency, "
        "and the throughput. With many files: each N times.",
        type=IntegerRange(1),
    )
    seconds: float | None = option(
        "S",
        "Like --repeat, for S seconds; with both, until one of them is reached.",
        type=NumberRange(0, min_open=True),
    )
    warmup: int | None = option(
        "M",
        "With --repeat or --seconds: M warm-up runs that are not counted. Default: 1.",
        type=IntegerRange(0),
    )
    threads: int | None = option(None, "Default: all cores.", type=IntegerRange(1))
    memory_limit: int | None = option(
        "SIZE",
        "Memory limit, for example 2GiB or 500MB; larger runs are refused. On a cluster: of each "
        "process. Default: the available memory.",
        type=parse_size,
    )
    tile: str | None = option(
        "auto|SIZE",
        "Compute the output tile by tile, exactly: from .npy or .zarr files to one, without "
        "holding either in memory. SIZE as in 64,256,256: extents of the last axes; auto: what "
        "--memory-limit allows. --resume continues an interrupted run.",
    )
    two_pass: bool = flag(
        "With --tile: compute what reductions and normalizations need of whole axes in passes "
        "of their own."
    )
    workers: int | None = option(
        "N",
        "With --tile or many files: run on N processes of this machine (extra 'cluster').",
        type=IntegerRange(1),
    )
    scheduler: str | None = option(
        "ADDRESS",
        "With --tile or many files: run on this Dask cluster, such as tcp://host:8786; files are "
        "read and written by its workers. Default: the environment variable "
        "DASK_SCHEDULER_ADDRESS.",
    )
    scheduler_file: str | None = option(
        "FILE", "Like --scheduler, from a Dask scheduler file.", type=FILE
    )
    limits: Limits = given(limit_options(OF_AN_IR))
    in_shapes: str = _override(
        "ID:SHAPE",
        "other shapes and layouts of inputs, as in 0:2x64x56x56*acdb+1:32x64x2x2.",
    )
    op_attrs: str = _override(
        "ID:NAME:VALUE",
        "other attributes of operations, as in 0:strides:2x2*auto_pad:SAME_UPPER; undef removes "
        "one.",
    )
    op_kind: str = _override("ID:KIND", "other kinds of operations, as in 1:Maximum.")
    mb: str = _override("N", "batch size; 0: as it is.")
    dt: str = _override(
        "DTYPE",
        "element type of all floating-point tensors, as in bf16, or of some, as in 0:f16+1:f16.",
    )
    physical: bool = flag(
        "oneDNN Graph file: write each output as a list of its elements in the order of its "
        "strides."
    )
    save_xml: str | None = option(
        "FILE.xml",
        "Write the model as an OpenVINO IR, and do not run it: a oneDNN Graph file, an IR of "
        "version 2 to 7, or an IR as changed by --shape, --set, --layout, --reverse-channels, "
        "--mean, --scale and --input-type.",
    )
    save_onednn: str | None = option(
        "FILE.json",
        "Write an IR as a oneDNN Graph file, its constants as .npz next to it, and do not run it.",
    )
    info: bool = flag(
        "Print names, types and shapes of inputs and outputs, and do not run the model."
    )
    explain_plan: bool = flag("Print the plan without running the model.")
    profile: str | None = option(
        "[FILE.json]",
        "Print the time of each layer; with a file, also write it as a Chrome trace.",
    )
    _list_operations = given(
        listing_option(
            "--list-operations", _list_operations, "Print the operations that can be run, and exit."
        )
    )
    as_json: bool = flag("Print the summary as JSON.", "--json")
    verbose: bool = flag("Print more; with --info, the layers.", "-v", "--verbose")
    quiet: bool = flag("Print only warnings and errors.", "-q", "--quiet")

    @property
    def arithmetic(self) -> str:
        """The `accuracy` with which the model is loaded."""
        if not self.rounded:
            return self.accuracy
        if self.accuracy != "float64":
            raise Mistake("--round needs --accuracy float64")
        return "float64-rounded"

    @property
    def wanted(self) -> list[str] | None:
        """Names of the requested tensors; None: the outputs of the model."""
        names = [*([self.until] if self.until is not None else []), *self.output_layers]
        return list(dict.fromkeys(names)) or None

    @property
    def changes_model(self) -> bool:
        """Whether options change the model of an IR."""
        return bool(self.shapes or self.constants or self.preprocesses)

    @property
    def repeats(self) -> bool:
        """Whether the model is run repeatedly."""
        return self.repeat is not None or self.seconds is not None

    def alternatives(self) -> list[RunRequest]:
        """Return a request for each combination of alternative overrides, separated by commas.

        Raises
        ------
        Mistake
            Several requests would write outputs to the same place.
        InputError
            An override has invalid syntax.
        """
        values = [[text.strip() for text in getattr(self, name).split(",")] for name in OVERRIDES]
        found = [
            self.replace(**dict(zip(OVERRIDES, chosen, strict=True)))
            for chosen in itertools.product(*values)
        ]
        if len(found) > 1:
            for one in found:
                one.overrides()  # mistakes in any request are reported before the first run
            if not (self.no_output or self.info or self.explain_plan):
                raise Mistake(
                    f"{len(found)} alternatives would write to the same files "
                    "(use --no-output, --info or --explain-plan, or one alternative)"
                )
            self.require_none_of(
                ("save_inputs", "profile", "expect", "resume"),
                "cannot be combined with several alternatives",
            )
        return found

    def overrides(self) -> Overrides | None:
        """Return the requested changes to a oneDNN Graph file; None without any.

        Raises
        ------
        InputError
            An option has invalid syntax.
        """
        given = {name: getattr(self, name) for name in OVERRIDES}
        if not any(given.values()):
            return None
        from deconv_ir import Overrides

        mb = given.pop("mb") or "0"
        if not mb.isascii() or not mb.isdigit() or len(mb) > 18:
            raise Mistake(f"mb: expected a batch size, found {mb!r}")
        return Overrides(**given, mb=int(mb))

    def require_consistent(self) -> None:
        """Require that options do not contradict each other."""
        if self.output == STREAM and self.as_json:
            raise Mistake("--output - and --json both write to standard output (use one of them)")
        if self.model == STREAM and any(i.rpartition("=")[2] == STREAM for i in self.inputs):
            raise Mistake("the model and an --input cannot both be standard input")
        if self.no_output and self.output is not None:
            raise Mistake("--output and --no-output cannot be combined")
        if self.info:
            self.require_none_of(("until", "output_layers", "explain_plan"), INFO_HINT)
        if self.save_xml is not None and self.save_onednn is not None:
            raise Mistake("--save-xml and --save-onednn cannot be combined")
        if self.save_onednn is not None:
            hint = "cannot be combined with --save-onednn (--save-xml writes the changed IR first)"
            self.require_none_of(("shapes", "constants", *PREPROCESSING), hint)
        if self.two_pass and self.tile is None:
            raise Mistake("--two-pass requires --tile")
        if self.dump_all and self.dump is None:
            raise Mistake("--all requires --dump DIR")
        if self.warmup is not None and not self.repeats:
            raise Mistake("--warmup requires --repeat N or --seconds S")

    def require_none_of(self, names: Sequence[str], reason: str) -> None:
        """Require that the options of these fields were not given."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value is not False and value != ():
                option = OPTION_NAMES.get(name, name.replace("_", "-"))
                raise Mistake(f"--{option} {reason}")


class RunCommand(Command):
    """A command with options whose value may be left out, also before an argument.

    click uses any argument after such an option as its value: the model, in ``deconv-run --profile
    model.xml``.  Here, only an argument that looks like a value is used.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join these options with their values, or with an empty value."""
        joined: list[str] = []
        rest = list(args)
        # Argument that follows an option, but does not look like its value -> hint.
        refused: dict[str, str] = {}
        while rest:
            word = rest.pop(0)
            if word == "--":
                joined += [word, *rest]
                break
            if word in OPTIONAL_VALUES:
                fits = bool(rest) and OPTIONAL_VALUES[word](rest[0])
                if rest and not fits:
                    refused[rest[0]] = _VALUES[word]
                word = f"{word}={rest.pop(0) if fits else ''}"
            if word in FILE_OPTIONS and rest:
                word = f"{word}={rest.pop(0)}"
            if word.partition("=")[0] in FILE_OPTIONS:
                # A shell expands an unquoted pattern to several words.
                while rest and rest[0].lower().endswith(ARRAY_SUFFIXES) and rest[0][0] != "-":
                    word += SEVERAL + rest.pop(0)
            joined.append(word)
        if ctx.resilient_parsing and joined and joined[-1].startswith("--"):
            # A shell requests the value of the last option; without a value, click would not look
            # at the arguments, which include the model.
            joined.append("")
        ctx.allow_extra_args = True  # they are refused here, with a hint
        extra = super().parse_args(ctx, joined)
        if extra and not ctx.resilient_parsing:
            shown = " ".join(map(str, extra))
            hints = [refused[shown]] if shown in refused else []
            if ".np" in shown:
                hints.append("arrays go after --input")
            hint = f" ({hints[0]})" if hints else ""
            plural = "" if len(extra) == 1 else "s"
            ctx.fail(f"Got unexpected extra argument{plural} ({shown}){hint}")
        return extra
