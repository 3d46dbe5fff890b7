"""Exit codes, messages and signals, shared by all commands."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sized
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import click

from deconv_ir.errors import MAX_MESSAGE, DeconvError, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from deconv_ir import Model
    from deconv_ir.findings import Finding

EXIT_OK = 0
EXIT_DIFFERS = 1
EXIT_MISTAKE = 2
EXIT_INTERRUPTED = 130

STREAM = "-"
"""The argument for standard input or output."""
FROM_STDIN = "<stdin>"
"""Name of standard input in messages."""

_MAX_LINE = 4 * MAX_MESSAGE
"""Maximum length of an error's line; location, layer, message and hint are bounded separately."""


_BENCHMARK_APP = {
    "-m": "the model needs no option: did you mean MODEL?",
    "-i": "did you mean --input?",
    "-d": "models run on the CPU: leave it out",
    "-b": "did you mean --shape, with another batch?",
    "-t": "did you mean --seconds?",
    "-niter": "did you mean --repeat?",
    "-nireq": "there is one request: leave it out",
    "-nstreams": "there is one stream: leave it out",
    "-nthreads": "did you mean --threads?",
    "-shape": "did you mean --shape?",
    "-data_shape": "did you mean --shape?",
    "-layout": "did you mean --layout?",
    "-mean_values": "did you mean --mean?",
    "-imean": "did you mean --mean?",
    "-scale_values": "did you mean --scale?",
    "-iscale": "did you mean --scale?",
    "-pc": "did you mean --profile?",
    "-hint": "there is one way to run a model: leave it out",
    "-c": "models run without plugins: leave it out",
    "-cdir": "models are not compiled: leave it out",
    "-infer_precision": "models run in their own precision: leave it out",
    "-ip": "did you mean --cast?",
    "-op": "models run in their own precision: leave it out",
    "-iop": "models run in their own precision: leave it out",
    "-report_folder": "did you mean --profile --json?",
    "-report_type": "did you mean --profile --json?",
    "-json_stats": "did you mean --json?",
    "-api": "there is one way to run a model: leave it out",
}
"""Options of OpenVINO's benchmark_app -> what they are here."""


class Terminated(BaseException):
    """The process was asked to terminate: clean up, then exit."""


_received: list[int] = []
"""Signals that came while a command ran."""


def _terminate(number: int, frame: Any) -> NoReturn:
    _received.append(number)
    # Later signals are ignored: they must not interrupt the clean-up.
    for again in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(again, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(number)


def raise_again() -> None:
    """Raise the exception of a received signal, if a library or a finalizer has dropped it."""
    if _received:
        raise KeyboardInterrupt if _received[0] == signal.SIGINT else Terminated(_received[0])


def _report_unraisable(unraisable: Any) -> None:
    # After a signal, a finalizer may drop its exception (`raise_again` will raise it), or meet an
    # object whose constructor was interrupted.
    if not _received:
        sys.__unraisablehook__(unraisable)


@contextlib.contextmanager
def _quiet_finalizers() -> Iterator[None]:
    """Ignore errors of finalizers after a signal."""
    report, sys.unraisablehook = sys.unraisablehook, _report_unraisable
    try:
        yield
    finally:
        sys.unraisablehook = report


@contextlib.contextmanager
def _caught_signals() -> Iterator[None]:
    """Turn terminating signals into exceptions, so that temporary files are removed."""
    old: dict[int, Any] = {}
    _received.clear()
    try:
        for number in map(int, (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)):
            handler = signal.getsignal(number)
            # A signal that the parent ignores (nohup, a job in the background) stays ignored.
            if handler is not signal.SIG_IGN:
                old[number] = handler
                signal.signal(number, _terminate)
    except ValueError:
        pass  # not in the main thread, the only one that handles signals
    try:
        yield
    finally:
        for caught, handler in old.items():
            signal.signal(caught, handler)


class Mistake(click.ClickException):
    """The user's mistake: one line on standard error, exit code 2."""

    exit_code = EXIT_MISTAKE

    def show(self, file: Any = None) -> None:
        """Print the message."""
        report_error(self.format_message())


def report_error(error: str | Exception) -> None:
    """Print an error in the common form: ``error: FILE:LINE: layer 'NAME' (TYPE, id N): ...``."""
    if isinstance(error, DeconvError):
        error = as_line(error)
    _report("error", "red", str(error))


def as_line(found: DeconvError | Finding) -> str:
    """Return an error or a finding as one line, with the option that helps."""
    finding = found.finding if isinstance(found, DeconvError) else found
    return finding.as_line(hint_of(finding))


def hint_of(finding: Finding) -> str | None:
    """Return the hint of a finding in a command's wording."""
    return None if finding.hint is None else finding.hint.command


def warn(message: str) -> None:
    """Print a warning on standard error."""
    _report("warning", "yellow", message)


def note(message: str) -> None:
    """Print a note on standard error."""
    _report("note", "cyan", message)


def counted(things: Sized | int, word: str) -> str:
    """Write a number with its noun, in the singular or plural."""
    number = things if isinstance(things, int) else len(things)
    return f"{number} {word}" + ("" if number == 1 else "s")


def to_json(content: object, indent: int | None = 2) -> str:
    """Write a document as JSON, on one line without `indent`.

    Paths in it may have bytes that are not UTF-8 (see `utf_8`).
    """
    import json
    import re

    text = json.dumps(content, indent=indent)
    # Strict parsers refuse an escape of half a surrogate pair: its backslash is escaped.
    escapes = r"\\\\|\\ud[89ab]..\\ud[c-f]..|(\\ud[89a-f]..)"
    return re.sub(escapes, lambda m: m[0] if m[1] is None else f"\\{m[0]}", text) + "\n"


def print_json(document: Mapping[str, Any]) -> None:
    """Print a JSON object on standard output."""
    click.echo(to_json(document), nl=False)


def colour_wanted() -> bool | None:
    """Whether to colour the output; None: only on terminals.

    Source: https://no-color.org
    """
    return False if os.environ.get("NO_COLOR") else None


def _report(label: str, colour: str, message: str) -> None:
    # If standard error cannot be written, only the exit code remains.
    with contextlib.suppress(OSError):
        start = click.style(f"{label}: ", fg=colour, bold=True)
        click.echo(start + one_line(message, _MAX_LINE), err=True, color=colour_wanted())


def _usage_message(error: click.ClickException) -> str:
    """Return a click error in the form of all messages."""
    if isinstance(error, click.NoSuchOption):
        # click names the first letter of -niter, and the second of -hint, as -h is an option.
        words = [word.partition("=")[0] for word in sys.argv[1:]]
        letter = error.option_name[1:]
        name = next(
            (word for word in words if word.startswith(error.option_name)),
            next((word for word in words if word in _BENCHMARK_APP and letter in word), ""),
        )
        runs = error.ctx is not None and error.ctx.command.name == "deconv-run"
        other = _BENCHMARK_APP.get(name) if runs else None
        message = f"no such option: {error.option_name if other is None else name}"
        if other is not None:
            message += f" ({other})"
        elif error.possibilities:
            message += f" (did you mean {error.possibilities[0]}?)"
    else:
        message = " ".join(error.format_message().split()).rstrip(".")
        message = message[:1].lower() + message[1:]
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return message
    return f"{message}; {context.command_path} --help lists the options"


def run_command(command: click.Command) -> NoReturn:
    """Run a command and exit, with a one-line message for any error that is not a bug.

    Exit codes: 0 done, 1 something differs (or was found), 2 the user's
    mistake, 130 interrupted, 143 terminated (129: the terminal is gone).
    """
    # Within: objects of an interrupted run end with its exception, when the function returns.
    with _quiet_finalizers():
        code = _exit_code(command)
    sys.exit(code)


def _exit_code(command: click.Command) -> int:
    """Run a command, report its error, and return the exit code."""
    try:
        with _caught_signals():
            _occupy_standard_streams()
            _pass_names_through()
            code = command.main(
                prog_name=command.name, standalone_mode=False, color=colour_wanted()
            )
            if sys.stdout is not None:
                sys.stdout.flush()  # now, while an error can still be reported
    except click.exceptions.Exit as done:
        code = done.exit_code
    except (Mistake, click.exceptions.NoArgsIsHelpError) as error:
        error.show()
        code = EXIT_MISTAKE
    except click.ClickException as error:
        report_error(_usage_message(error))
        code = EXIT_MISTAKE
    except DeconvError as error:
        report_error(error)
        code = EXIT_MISTAKE
    except MemoryError as error:
        report_error(f"out of memory: {str(error) or 'the files that are read do not fit'}")
        code = EXIT_MISTAKE
    except (KeyboardInterrupt, click.Abort):
        with contextlib.suppress(OSError):
            click.echo("interrupted", err=True)
        code = EXIT_INTERRUPTED
    except Terminated as error:
        code = 128 + int(error.args[0])
    except (BrokenPipeError, SystemExit) as error:
        # The reader of the output has closed the pipe.  click exits by itself in this case, and for
        # a completion request.
        if isinstance(error, SystemExit) and error.code != 1:
            raise
        _drop_output()
        code = EXIT_OK
    except OSError as error:
        # Errors of files have a name; without a name, it is standard output.
        _drop_output()
        where = "cannot write to standard output" if error.filename is None else error.filename
        report_error(f"{where}: {error.strerror or error}")
        code = EXIT_MISTAKE
    except Exception:
        # During the initialisation of an extension module, an interruption may appear as any other
        # error.
        if not _received:
            raise
        code = 128 + _received[0]
    return code if isinstance(code, int) else EXIT_OK


def run_and_leave(command: click.Command) -> NoReturn:
    """Run a command, and end without finalizing the interpreter: 14 ms of deconv-lint."""
    try:
        run_command(command)
    except SystemExit as done:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
        os._exit(done.code if isinstance(done.code, int) else EXIT_OK)


def run_model_command(command: click.Command) -> NoReturn:
    """Run a command that may run a model, and end the process."""
    # The kernels have their own threads.  Those of NumPy's BLAS would take a third of its import to
    # start, and spin concurrently after each product.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run_and_leave(command)


def standard_input() -> BinaryIO:
    """Return standard input as a binary stream."""
    if sys.stdin is None:
        raise Mistake("standard input is closed")
    return sys.stdin.buffer


def read_standard_input(limit: int) -> bytes:
    """Return the bytes of standard input, at most `limit` + 1, so that larger input is rejected."""
    return standard_input().read(limit + 1)


def require_absent(path: Path, force: bool) -> None:
    """Require that a file does not exist, or may be overwritten."""
    if path.exists() and not force:
        raise Mistake(f"{path} already exists (use --force to overwrite)")


def _occupy_standard_streams() -> None:
    """Open closed standard streams, so that no other file gets their descriptors."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(descriptor)


def _pass_names_through() -> None:
    """Let paths with bytes that are not in the encoding of the output be printed as they are."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="surrogateescape")


def _drop_output() -> None:
    """Keep the interpreter's own flush at exit from failing again."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)


def model_name(model: Model) -> str:
    """Return the name of the model in messages and summaries."""
    return model.graph.file or FROM_STDIN


def unified_diff(before: str, after: str, name: str) -> Iterator[str]:
    """Yield the lines of a diff between two texts of one file, in the format of `patch`."""
    import difflib

    for line in difflib.unified_diff(_lines_of(before), _lines_of(after), f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines_of(text: str) -> list[str]:
    import re

    # str.splitlines also splits at characters that are not line ends in a diff.
    return re.findall(r"[^\n]*\n|[^\n]+", text)
