"""deconv-lint server: diagnostics, hover and quick fixes for editors.

Source: Language Server Protocol Specification 3.17.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding, Severity
from deconv_ir.formats import parse_bytes
from deconv_ir.formats.openvino_xml.weights import weights_beside
from deconv_ir.formats.registry import find_format
from deconv_ir.linter.catalogue import RULES
from deconv_ir.linter.engine import check_bytes, open_context
from deconv_ir.linter.fix import fix_bytes
from deconv_ir.linter.hover import hover
from deconv_ir.version import __version__

from ..shared.common import EXIT_DIFFERS, EXIT_OK, hint_of
from ..shared.reporters.sarif import rule_uri, rules_page
from .paths import is_other_xml
from .settings import LintSettings

if TYPE_CHECKING:
    from pygls.workspace import PositionCodec, TextDocument

    from deconv_ir.linter.context import LintContext

    from .request import LintRequest

DELAY_SECONDS = 0.2
"""Delay after the last change before the text is checked: less than a pause in typing."""

_ENCODING = re.compile(r"""\s*<\?xml[^<>]*?(\sencoding\s*=\s*["'][\w.:-]+["'])""")
_LEVELS = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}
_FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.deconv-lint"


class Checked(NamedTuple):
    """One version of a text, and its findings."""

    text: str
    diagnostics: list[lsp.Diagnostic]
    findings: list[Finding]


class Positions:
    """Converts offsets into a text to positions of the protocol, and back."""

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self.text = text
        self.codec = codec
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def line_text(self, line: int) -> str:
        """Return a line, from 0, without its end."""
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[line] : end].rstrip("\r\n")

    def at(self, line: int, column: int) -> lsp.Position:
        """Return the position of a column, in characters; both from 0."""
        line = min(line, len(self.starts) - 1)
        before = self.line_text(line)[:column]
        return lsp.Position(line, self.codec.client_num_units(before))

    def of(self, offset: int) -> lsp.Position:
        """Return the position of an offset."""
        line = bisect_right(self.starts, offset) - 1
        return self.at(line, offset - self.starts[line])

    def range(self, start: int, end: int) -> lsp.Range:
        """Return the range between two offsets."""
        return lsp.Range(self.of(start), self.of(end))

    def offset(self, position: lsp.Position) -> int:
        """Return the offset of a position."""
        line = min(position.line, len(self.starts) - 1)
        units = 0
        text = self.line_text(line)
        for column, character in enumerate(text):
            if units >= position.character:
                return self.starts[line] + column
            units += self.codec.client_num_units(character)
        return self.starts[line] + len(text)


class Linter:
    """The state of the server: settings, and the last result for each document."""

    def __init__(self, request: LintRequest) -> None:
        self.request = request
        self.limits = request.limits
        self.checked: dict[str, Checked] = {}
        self.contexts: dict[str, tuple[str, LintContext]] = {}

    def check(self, uri: str, text: str, codec: PositionCodec) -> Checked:
        """Check a text, saved or not; the .bin is the one next to the file."""
        positions = Positions(text, codec)
        try:
            result = check_bytes(*self.arguments(uri, text), self.limits)
        except DeconvError as error:  # in the settings
            start = positions.range(0, 0)
            return Checked(text, [lsp.Diagnostic(start, str(error), source="deconv-lint")], [])
        data = _encoded(text)
        known = find_format(data, None)
        if is_other_xml(result) or (known and known.shares_suffixes and not known.is_likely(data)):
            result = result._replace(findings=[])
        config = LintSettings(self.request).config(to_fs_path(uri) or "")
        page = config.docs_url or rules_page()
        diagnostics = [_diagnostic(finding, positions, page) for finding in result.findings]
        checked = Checked(text, diagnostics, result.findings)
        self.checked[uri] = checked
        return checked

    def arguments(self, uri: str, text: str) -> tuple[bytes, str, Any, str | None]:
        """Return the arguments of `check_bytes`: bytes, name, options and the .bin."""
        path = to_fs_path(uri) if uri.startswith("file:") else None
        # Settings are read again: they may have changed.
        options = LintSettings(self.request).options(path or "")
        return _encoded(text), path or uri, options, path and weights_beside(path)

    def context(self, uri: str, text: str) -> LintContext | None:
        """Return the graph of a text with its shapes; None if it cannot be read."""
        known = self.contexts.get(uri)
        if known is None or known[0] != text:
            data, name, options, weights = self.arguments(uri, text)
            parsed = parse_bytes(data, name, self.limits)
            known = self.contexts[uri] = text, open_context(parsed, options, weights)
        return known[1] if known[1].parsed.graph is not None else None

    def fix_all(self, uri: str, text: str) -> str:
        """Return the text with all safe fixes applied."""
        data, name, options, weights = self.arguments(uri, text)
        fixed, _, _ = fix_bytes(data, name, options, weights, self.limits)
        head = text.find("?>") + 2  # no fix precedes it, but its encoding may be blank
        return text[:head] + fixed.decode()[head:] if fixed != data else text


def _encoded(text: str) -> bytes:
    """Return a text in UTF-8, with blanks for the declaration of another encoding."""
    declared = _ENCODING.match(text)
    if declared is not None:
        start, end = declared.span(1)
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return text.encode("utf-8", "replace")


def _diagnostic(finding: Finding, positions: Positions, page: str | None) -> lsp.Diagnostic:
    line = (finding.line or 1) - 1
    column = (finding.column or 1) - 1
    end = finding.end_column - 1 if finding.end_column else None
    if finding.column is None:  # the line, without its indentation
        text = positions.line_text(min(line, len(positions.starts) - 1))
        column, end = len(text) - len(text.lstrip()), len(text)
    start = positions.at(line, column)
    hint = hint_of(finding)
    address = rule_uri(page, finding.code)
    return lsp.Diagnostic(
        range=lsp.Range(start, positions.at(line, column + 1 if end is None else end)),
        message=finding.message + (f" ({hint})" if hint else ""),
        severity=_LEVELS[finding.severity],
        code=finding.code,
        code_description=lsp.CodeDescription(address) if address else None,
        source="deconv-lint",
    )


def _actions(
    uri: str, checked: Checked, asked: lsp.Range, codec: PositionCodec
) -> list[lsp.CodeAction]:
    """Return the quick fixes of the findings that overlap a range."""
    positions = Positions(checked.text, codec)
    actions = []
    for diagnostic, finding in zip(checked.diagnostics, checked.findings, strict=False):
        fix = finding.fix
        if fix is None or not _touch(diagnostic.range, asked):
            continue
        rule = RULES[finding.code]
        for one in (fix, *fix.alternatives):
            does = one.title or rule.fix.partition(";")[0] or "applies its fix"
            title = f"{rule.code}: {does}" + ("" if one.safe else " (unsafe: review it)")
            edits = [
                lsp.TextEdit(positions.range(start, end), new) for start, end, new in one.edits
            ]
            actions.append(
                lsp.CodeAction(
                    title=title,
                    kind=lsp.CodeActionKind.QuickFix,
                    diagnostics=[diagnostic],
                    is_preferred=one.safe,
                    edit=lsp.WorkspaceEdit(changes={uri: edits}),
                )
            )
    return actions


def _touch(a: lsp.Range, b: lsp.Range) -> bool:
    def key(position: lsp.Position) -> tuple[int, int]:
        return position.line, position.character

    return key(a.start) <= key(b.end) and key(b.start) <= key(a.end)


def make_server(request: LintRequest) -> LanguageServer:
    """Make the server."""
    server = LanguageServer(
        "deconv-lint", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full
    )
    linter = Linter(request)

    def current(uri: str) -> tuple[TextDocument, Checked]:
        document = server.workspace.get_text_document(uri)
        checked = linter.checked.get(uri)
        if checked is None or checked.text != document.source:
            checked = linter.check(uri, document.source, document.position_codec)
        return document, checked

    def publish(uri: str) -> None:
        document, checked = current(uri)
        server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, checked.diagnostics, document.version)
        )

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        linter.checked.pop(params.text_document.uri, None)  # the .bin may have changed too
        linter.contexts.pop(params.text_document.uri, None)
        publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        await asyncio.sleep(DELAY_SECONDS)
        # Newer versions of pygls decode the keys; `get_text_document` would make a closed document.
        documents = server.workspace.text_documents
        document = documents.get(unquote(uri)) or documents.get(uri)
        if document is not None and document.version == params.text_document.version:
            publish(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        linter.checked.pop(uri, None)
        linter.contexts.pop(uri, None)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        uri = params.text_document.uri
        document = server.workspace.get_text_document(uri)
        context = linter.context(uri, document.source)
        if context is None:
            return None
        positions = Positions(document.source, document.position_codec)
        found = hover(context, positions.offset(params.position))
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
        return lsp.Hover(content, positions.range(*found.span))

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, _FIX_ALL]),
    )
    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        document, checked = current(uri)
        only = params.context.only
        found = []
        if only is None or lsp.CodeActionKind.QuickFix in only:
            found += _actions(uri, checked, params.range, document.position_codec)
        if only and any(_FIX_ALL.startswith(kind) for kind in only):
            text = document.source
            fixed = linter.fix_all(uri, text)
            positions = Positions(text, document.position_codec)
            whole = positions.range(0, len(text))
            if fixed != text:
                edit = lsp.WorkspaceEdit(changes={uri: [lsp.TextEdit(whole, fixed)]})
                title = "deconv-lint: make all safe fixes"
                found.append(lsp.CodeAction(title=title, kind=_FIX_ALL, edit=edit))
        return found

    return server


def serve(request: LintRequest) -> int:
    """Serve an editor over standard input and output until it disconnects, and return a code.

    The code is 1 after `exit` without `shutdown`, as the protocol has it (section "Exit
    Notification").
    """
    gc.enable()
    server = make_server(request)
    asked: set[str] = set()

    @server.feature(lsp.SHUTDOWN)
    def shut_down(params: None) -> None:
        asked.add(lsp.SHUTDOWN)

    @server.feature(lsp.EXIT)
    def leave(params: None) -> None:
        asked.add(lsp.EXIT)

    # pygls closes its stream; the command flushes standard output at its end.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
        server.start_io(stdout=stream)
    return EXIT_DIFFERS if asked == {lsp.EXIT} else EXIT_OK
