"""The index of the site's search: every word is found, few are there twice, a message has a place.

The generator's index has the whole text of each section, so its size is that of all pages.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Characters of a section that a result shows as they are.
SHOWN: Final = 160
# Found by their titles and first paragraphs alone: who changes Fairlead reads them, not users.
BRIEF: Final = (
    *(
        "docs/decisions/",
        "docs/architecture/",
        "docs/testing/",
        "docs/reference/security-evidence/",
    ),
    *("CHANGELOG/", "CONTRIBUTING/", "SECURITY/"),
)
_COMMON: Final = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "by", "can", "for", "from", "has", "have"),
        *("if", "in", "is", "it", "its", "no", "not", "of", "on", "one", "or", "than", "that"),
        *("the", "they", "this", "to", "which", "with"),
    )
)
# A message with its cause and cure, as tests/reference_pages.py writes it, in HTML.
_ENTRY: Final = re.compile(
    r"<li>\s*(?:<p>)?<a id=\"?(m[0-9a-f]{8})\"?></a>(.*?)(?:<br */?>.*?)?</li>", re.DOTALL
)


def compact(items: Iterable[dict[str, Any]], texts: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the sections of the index, each with its first words and then what is new in the rest.

    `texts` has the HTML of each page by its location. A message is a section of its
    own, without its cause and cure: those are one click away, and the same for many.
    """
    for item in items:
        page, _, anchor = item["location"].partition("#")
        entries = _ENTRY.findall(texts[page])
        if not (anchor and (entries or page.startswith(BRIEF))):
            yield {**item, "text": "" if entries else _shorten(item["text"])}
            for place, title in entries:
                yield {
                    "location": f"{page}#{place}",
                    "level": 2,
                    "title": html.escape(_plain(title), quote=False),
                    "text": "",
                    "path": [],
                    "tags": [],
                }


def _plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def _shorten(text: str) -> str:
    text = _plain(text)
    end = text.rfind(" ", 0, SHOWN) if len(text) > SHOWN else len(text)
    shown, rest = text[:end], text[end:].split()
    old = {*map(_word, shown.split()), *_COMMON, ""}
    new = dict.fromkeys(word for word in map(_word, rest) if word.lower() not in old)
    more = " ".join(word for word in new if word not in old)
    return html.escape(f"{shown} … {more}" if more else shown, quote=False)


def _word(text: str) -> str:
    return text.strip(".,;:()")
