"""Check that a built site has every public name and option, and no external resources."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

import click
from deconv_cli.lint.command import command as lint
from deconv_cli.run.command import command as run
from deconv_cli.spec.command import command as spec

import deconv_ir
import deconv_ir.operations

# Resources that a browser would fetch: scripts, style sheets, fonts, images.
FETCHED = re.compile(r"<(?:script|img|iframe)[^>]+src=\"([^\"]+)|<link[^>]+stylesheet[^>]*>")


def options_of(command: click.Command) -> set[str]:
    """Return the long names of all options of a command and its subcommands."""
    context = click.Context(command)
    found = {
        name
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and not parameter.hidden
        for name in parameter.opts
        if name.startswith("--")
    }
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            found |= set() if inner is None else options_of(inner)
    return found


def problems(site: Path) -> list[str]:
    """Return one line for each name or option that is missing and each external resource."""
    found = []
    for module, page in ((deconv_ir, "api"), (deconv_ir.operations, "operations")):
        text = (site / "reference" / f"{page}.html").read_text()
        for name in module.__all__:
            anchor = f'id="{module.__name__}.{name}"'
            if name != "__version__" and anchor not in text:
                found.append(f"reference/{page}.html: no entry of {module.__name__}.{name}")
    text = html.unescape((site / "reference" / "cli.html").read_text())
    for command in (run, lint, spec):
        for option in sorted(options_of(command)):
            if not re.search(rf"{option}\b", text):
                found.append(f"reference/cli.html: no option {option}")
    # Markdown takes indented lines for code.
    for block in re.findall(r"<pre.*?</pre>", text, re.S):
        if re.search(r"[\w)]\.\s*(</\w+>)*\s*</pre>", block):
            found.append(f"reference/cli.html: a sentence is a code block: {block[:200]}")
    if not (site / "search" / "search_index.js").is_file():
        found.append("search/search_index.js is missing: pages opened from disk have no search")
    for page_file in site.rglob("*.html"):
        for match in FETCHED.finditer(page_file.read_text()):
            if re.search(r"(https?:)?//", match[1] or match[0]):
                found.append(f"{page_file.relative_to(site)}: fetches {match[1] or match[0]}")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems(Path(sys.argv[1]))) or None)
