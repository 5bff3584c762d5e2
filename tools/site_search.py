"""The index of the site's search, made small: every word is found, few are there twice."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Characters of a section that a result shows as they are.
SHOWN: Final = 240
# Found by their titles and first paragraphs alone: who changes Fairlead reads them, not users.
BRIEF: Final = ("docs/decisions/", "CHANGELOG/", "CONTRIBUTING/", "SECURITY/")
_COMMON: Final = frozenset(
    "a an and are as at be by can each for from has have if in is it its no not of on one or than "
    "that the they this to which with".split()
)


def compact(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the sections of the index, each with its first words and then what is new in the rest.

    The generator's has the whole text, so its size is that of all pages.
    """
    for item in items:
        page, _, anchor = item["location"].partition("#")
        if not (anchor and page.startswith(BRIEF)):
            yield {**item, "text": _shorten(item["text"])}


def _shorten(text: str) -> str:
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
    end = text.rfind(" ", 0, SHOWN) if len(text) > SHOWN else len(text)
    shown, rest = text[:end], text[end:].split()
    old = {*map(_word, shown.split()), *_COMMON, ""}
    new = dict.fromkeys(word for word in map(_word, rest) if word.lower() not in old)
    more = " ".join(word for word in new if word not in old)
    return html.escape(f"{shown} … {more}" if more else shown, quote=False)


def _word(text: str) -> str:
    return text.strip(".,;:()")
