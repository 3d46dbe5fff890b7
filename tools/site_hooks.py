"""Hooks of mkdocs.yml: add pages from outside docs/, rewrite links, describe commands' options."""

from __future__ import annotations

import html
import importlib
import inspect
import logging
import os
import re
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
IMAGES = (".png", ".svg")
SHIM = "https://unpkg.com/iframe-worker/shim"
"""The script that the plugin `offline` loads where browsers run no workers."""
WORKER = "assets/site_worker.js"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
COMMAND = re.compile(r"^<!-- options of deconv-(\w+) -->$", re.M)
log = logging.getLogger("mkdocs.site_hooks")


def _target(source: Path, link: str) -> Path:
    return Path(os.path.normpath(source.parent / link))


def _in_site(path: Path) -> str | None:
    """Return the path in the site of a file of the repository, or None if the site lacks it."""
    name = path.relative_to(ROOT).as_posix()
    if name in PAGES:
        return PAGES[name]
    if path.is_file() and path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return f"repository/{name}" if path.suffix in IMAGES else None


def _source(uri: str) -> Path:
    """Return the file of the repository from which a page is made."""
    return next((ROOT / name for name, page in PAGES.items() if page == uri), DOCS / uri)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages at the root, and the images from other folders that pages show."""
    for name, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, WORKER, abs_src_path=str(ROOT / "tools/site_worker.js")))
    for source in [*map(ROOT.joinpath, PAGES), *DOCS.rglob("*.md")]:
        for _, _, link, _ in LINK.findall(source.read_text()):
            path = _target(source, link)
            if path.suffix in IMAGES and path.is_file() and not path.is_relative_to(DOCS):
                uri = _in_site(path)
                if uri is not None and files.get_file_from_path(uri) is None:
                    files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Let pages that are opened from disk search without a network."""
    return output.replace(SHIM, os.path.relpath(WORKER, Path(page.url).parent))


def on_post_template(output_content: str, **_: Any) -> str:
    """Do the same for the page of missing addresses, which is at the root."""
    return output_content.replace(SHIM, WORKER)


def _help(text: str) -> str:
    """Return the help of a command as Markdown: paragraphs, and indented lines as code."""
    parts = []
    for part in inspect.cleandoc(text).split("\n\n"):
        title, _, rest = part.removeprefix("\b\n").partition("\n")
        if rest.startswith("  "):
            parts += [title, f"```text\n{inspect.cleandoc(rest)}\n```"]
        else:
            parts.append(part.removeprefix("\b\n"))
    return "\n\n".join(parts)


def _cell(text: str) -> str:
    return " ".join(html.escape(text, quote=False).replace("|", "\\|").split())


def _command(name: str, command: click.Command, heading: str = "##") -> list[str]:
    """Describe a command as its --help does: usage, and options with their defaults."""
    context = click.Context(command, info_name=name)
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = [f"{heading} {name}", "", _help(command.help or ""), "", "```text", usage, "```", ""]
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [record for record in records if record and record[1]]
    if rows:
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| `{' '.join(n.split())}` | {_cell(t)} |" for n, t in rows]
    if command.epilog:
        lines += ["", _help(command.epilog)]
    lines.append("")
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                lines += _command(f"{name} {inner}", found, heading + "#")
    return lines


def _commands(found: re.Match[str]) -> str:
    command = importlib.import_module(f"deconv_cli.{found[1]}.command").command
    return "\n".join(_command(f"deconv-{found[1]}", command))


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Point links at pages of the site; links to source files are replaced by their text."""
    source = _source(page.file.src_uri)

    def rewrite(found: re.Match[str]) -> str:
        mark, text, link, anchor = found.groups()
        if "://" in link or link.startswith("mailto:"):
            return found[0]
        path = _target(source, link)
        if not path.exists() or not path.is_relative_to(ROOT):
            log.warning("%s: link to %r, which does not exist", page.file.src_uri, link)
            return found[0]
        uri = _in_site(path)
        if uri is None:
            return text
        there = os.path.relpath(uri, Path(page.file.src_uri).parent)
        return f"{mark}[{text}]({there}{anchor or ''})"

    return COMMAND.sub(_commands, LINK.sub(rewrite, markdown))
