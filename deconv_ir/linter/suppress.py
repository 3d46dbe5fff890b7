"""Comments in the file that silence findings.

``<!-- deconv-lint: ignore=IR401,pads-ignored -->`` silences the named rules for
the layer or edge that follows, ``ignore`` alone all rules; ``ignore-file``
does so for the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding, TextSpan
from deconv_ir.formats.file_text import FileText
from deconv_ir.linter.catalogue import RULES, select_rules
from deconv_ir.suggestions import one_edit_apart

OWN_RULE: Final = "IR113"
"""The rule about these comments."""

_DIRECTIVE: Final = re.compile(
    r"\s*deconv-lint:\s*(ignore|ignore-file)(?:\s*=\s*([\w,\s-]*?))?\s*(?:--.*|:.*)?", re.DOTALL
)
_NEARLY: Final = re.compile(r"\s*(\w{3,8}[-_ ]?\w{2,6})\s*[:=]?\s*(\w+)")
_BLANK: Final = re.compile(r"\s*")
_OPENING: Final = len("<!--")
_CLOSING: Final = len("-->")


class Directive:
    """A word of a comment: the rules that it silences, and their scope."""

    __slots__ = ("codes", "owner", "span", "used", "word")

    def __init__(
        self, word: str, codes: frozenset[str], owner: int | None, span: tuple[int, int]
    ) -> None:
        self.word = word
        """The word in the comment; empty: all rules."""
        self.codes = codes
        self.owner = owner
        """Start of the layer or edge; None: the whole file."""
        self.span = span
        self.used = False


class Suppressions:
    """The rules that a file's comments silence; `starts` has the offsets of its parts, in order."""

    def __init__(self, file_text: FileText, starts: Sequence[int]) -> None:
        self.directives: dict[int | None, list[Directive]] = {}
        """Start of a layer or an edge, or None for the whole file -> its directives."""
        self.mistakes: list[Finding] = []
        """Comments that do not name a rule."""
        self._silent: dict[tuple[int | None, str], bool] = {}
        known = set(starts)
        followers = _followers(file_text)
        for start, end in file_text.comments:
            text = file_text.text[start:end]
            if "deconv-lint:" not in text and not _is_meant(text):
                continue
            match = _DIRECTIVE.fullmatch(text)
            if match is None:
                message = "this comment is not a directive: write 'deconv-lint: ignore=RULE,...'"
                self.mistakes.append(_finding(message, start, end))
                continue
            if match[2] is not None and not match[2].strip(" ,"):
                message = "this comment names no rule after '=': write 'ignore=RULE,...'"
                self.mistakes.append(_finding(message, start, end))
                continue
            owner = None
            if match[1] == "ignore":
                owner = followers[start]
                if owner not in known:
                    message = "no layer and no edge follows this comment, so it silences nothing"
                    self.mistakes.append(_finding(message, start, end))
                    continue
            for word in map(str.strip, (match[2] or "").split(",")):
                try:
                    codes = select_rules([word]) if word or match[2] else frozenset(RULES)
                except DeconvError as error:
                    self.mistakes.append(_finding(str(error), start, end))
                    continue
                # A comment that silences too much would also silence the finding about it.
                codes = codes if len(codes) == 1 else codes - {OWN_RULE}
                found = Directive(word, codes, owner, (start, end))
                self.directives.setdefault(owner, []).append(found)

    def silences(self, code: str, owner: int | None) -> bool:
        """Whether a finding in the layer or edge that begins at `owner` is silenced."""
        in_file = self._are_silent(None, code)
        return self._are_silent(owner, code) or in_file

    def _are_silent(self, owner: int | None, code: str) -> bool:
        """Whether a directive for this place has the rule; each is looked at once for a rule."""
        found = self._silent.get((owner, code))
        if found is None:
            fitting = [d for d in self.directives.get(owner, ()) if code in d.codes]
            for directive in fitting:
                directive.used = True
            found = self._silent[owner, code] = bool(fitting)
        return found

    def unused(self, asked: Collection[str], *, selected: bool) -> Iterator[Finding]:
        """Iterate over the unused comments.

        Only rules in `asked` were run: a comment about another one may be needed.  If only a few
        were `selected`, a comment about a family is not checked with some of its rules.
        """
        for directive in (d for found in self.directives.values() for d in found):
            # Rules that read all weights are usually not run.
            judged = {c for c in directive.codes if not RULES[c].deep} or directive.codes
            run = judged.intersection(asked)
            if directive.used or OWN_RULE in judged or not run or (selected and run < judged):
                continue
            what = directive.word or "this comment"
            where = "file" if directive.owner is None else "layer or edge that follows"
            message = f"{what} silences nothing: the {where} has no such finding"
            yield _finding(message, *directive.span)


def _followers(file_text: FileText) -> dict[int, int]:
    """Return, for the start of each comment, the offset of the first thing after it.

    Blanks and further comments are passed over.
    """
    found: dict[int, int] = {}
    for start, end in reversed(file_text.comments):
        gap = _BLANK.match(file_text.text, end + _CLOSING)
        after = gap.end() if gap else end
        found[start] = found.get(after + _OPENING, after)
    return found


def _finding(message: str, start: int, end: int) -> Finding:
    return Finding(message, TextSpan(start, end), rule="suppression")


def _is_meant(text: str) -> bool:
    """Whether a comment looks like one for this linter, with a wrong letter or colon."""
    match = _NEARLY.match(text)
    if match is None:
        return False
    name, word = match[1].lower().replace("_", "-").replace(" ", "-"), match[2].lower()
    return (name == "deconv-lint" or one_edit_apart(name, "deconv-lint")) and (
        word == "ignore" or one_edit_apart(word, "ignore")
    )
