"""Comments in the file that silence findings.

``<!-- deconv-lint: ignore=IR401,pads-ignored -->`` silences the named rules for
the layer or edge that follows, ``ignore`` alone all rules; ``ignore-file``
does so for the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from deconv_ir.errors import DeconvError
from deconv_ir.formats.openvino_xml.source import Source
from deconv_ir.linter.catalogue import RULES, select_rules

_DIRECTIVE: Final = re.compile(
    r"\s*deconv-lint:\s*(ignore|ignore-file)(?:\s*=\s*([\w,\s-]*?))?\s*(?:--.*|:.*)?", re.DOTALL
)
_GAP: Final = re.compile(r"\s*(?:<!--.*?-->\s*)*", re.DOTALL)


class Suppressions:
    """What the comments of one file silence.

    Parameters
    ----------
    source : Source
    starts : sequence of int
        Where the layers and edges begin, in order.
    """

    def __init__(self, source: Source, starts: Sequence[int]) -> None:
        self.everywhere: set[str] = set()
        self.at: dict[int, set[str]] = {}
        """Where a layer or an edge begins -> the rules that are silent for it."""
        self.mistakes: list[tuple[tuple[int, int], str]] = []
        """Comments that name no rule: their spans, and why."""
        known = set(starts)
        for start, end in source.comments:
            text = source.text[start:end]
            if "deconv-lint:" not in text:
                continue
            match = _DIRECTIVE.fullmatch(text)
            if match is None:
                message = "this comment is no directive: write 'deconv-lint: ignore=RULE,...'"
                self.mistakes.append(((start, end), message))
                continue
            if match[2] is not None and not match[2].strip(" ,"):
                message = "this comment names no rule after '=': write 'ignore=RULE,...'"
                self.mistakes.append(((start, end), message))
                continue
            try:
                codes = set(select_rules(match[2].split(","))) if match[2] else set(RULES)
            except DeconvError as error:
                self.mistakes.append(((start, end), str(error)))
                continue
            if match[1] == "ignore-file":
                self.everywhere |= codes
                continue
            gap = _GAP.match(source.text, end + 3)
            follows = gap.end() if gap else end
            if follows in known:
                self.at.setdefault(follows, set()).update(codes)
            else:
                message = "no layer and no edge follows this comment, so it silences nothing"
                self.mistakes.append(((start, end), message))

    def silences(self, code: str, owner: int | None) -> bool:
        """Tell whether a finding is silenced.

        Parameters
        ----------
        code : str
        owner : int or None
            Where the layer or edge that it is in begins.
        """
        if code in self.everywhere:
            return True
        return owner is not None and code in self.at.get(owner, ())
