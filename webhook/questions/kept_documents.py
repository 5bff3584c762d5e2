"""The documents of a text that somebody writes: those of the text before are not read again."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.policy.findings import Finding

T = TypeVar("T")

_DOCUMENT: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_DIRECTIVE: Final = re.compile(r"^%", re.MULTILINE)
# The number of a document in the name of its file, and a line of the document.
_PLACE: Final = re.compile(r"\.yaml#(\d+)(?::(\d+))?")


class ReadText(NamedTuple, Generic[T]):
    """What is read of each document; lines: how many are above it, by its number."""

    documents: list[T]
    lines: Mapping[int, int]

    def placed(self, message: str) -> str:
        """Return a message about documents with the file and the lines of the text itself."""

        def place(match: re.Match[str]) -> str:
            number, line = match.groups()
            return f".yaml:{int(line) + self.lines.get(int(number), 0)}" if line else ".yaml"

        return _PLACE.sub(place, message)

    def finding(self, finding: Finding) -> Finding:
        """Return a finding about one of the documents, at its place in the text."""
        file, _, number = finding.file.partition("#")
        line = finding.line + self.lines[int(number)]
        return replace(finding, file=file, line=line, message=self.placed(finding.message))


class KeptDocuments(Generic[T]):
    """Reads the documents of one text after the other; `read` takes a file's name and a text.

    The name is as in `policies.yaml#7`, and lines count from the document's first one, so nothing
    that is read of a document changes with the text above it.
    """

    def __init__(self, file: str, read: Callable[[str, str], T]) -> None:
        self._file = file
        self._read = read
        self._kept: dict[tuple[str, int], tuple[int, T]] = {}
        self._last = 0

    def read(self, text: str) -> ReadText[T]:
        """Return the documents of the text, and keep them until the next one."""
        # A directive is for the document below it.
        starts = [] if _DIRECTIVE.search(text) else [m.start() for m in _DOCUMENT.finditer(text)]
        kept: dict[tuple[str, int], tuple[int, T]] = {}
        lines: dict[int, int] = {}
        equal, above = Counter[str](), 0
        for begin, end in pairwise((0, *starts, len(text))):
            part = text[begin:end]
            key = part, equal[part]
            equal[part] += 1
            if key not in self._kept:
                self._last += 1
            number, document = self._kept.get(key) or (
                self._last,
                self._read(f"{self._file}#{self._last}", part),
            )
            kept[key] = number, document
            lines[number] = above
            above += part.count("\n")
        self._kept = kept
        return ReadText([document for _, document in kept.values()], lines)
