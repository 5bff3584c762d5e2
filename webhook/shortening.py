"""Texts for messages: long ones cut, and those of others without control characters.

The status of a Run has the last output of its program, and an admin reads it. With escape sequences
that output could change the screen, or text that the admin pastes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# Control characters of both sets (ECMA-48) except line ends and tabs, and characters that change
# the direction of text (Unicode's Bidi_Control), which hide its real order.
_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def cut(text: str, most: int) -> str:
    """Return the text, or its first `most` characters and an ellipsis.

    >>> cut("abc", 3), cut("abcd", 3)
    ('abc', 'abc…')
    """
    return text if len(text) <= most else f"{text[:most]}…"


def fit(text: str, limit: int) -> str:
    """Return the text, or its beginning and an ellipsis, `limit` characters in all.

    >>> fit("abc", 3), fit("abcd", 3)
    ('abc', 'ab…')
    """
    return text if len(text) <= limit else cut(text, limit - 1)


def apart(text: str, other: str, most: int) -> tuple[str, str]:
    """Two texts, each cut to `most` characters around the first place where they differ."""
    pairs = enumerate(zip(text, other, strict=False))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(text), len(other)))
    start = alike - most // 4 if alike >= most - 1 else 0
    return _window(text, start, most), _window(other, start, most)


def _window(text: str, start: int, most: int) -> str:
    before, after = "…" if start else "", "…" if start + most < len(text) else ""
    return f"{before}{text[start : start + most]}{after}"


def first_few(names: Sequence[str], most: int) -> str:
    """Return the first few names, and how many more there are.

    >>> first_few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def shortened(names: Sequence[str], most: int = 3) -> str:
    """Return the first few names, and how many more there are."""
    # One more name is as short as a text that there is one more.
    return first_few(names, most if len(names) > most + 1 else most + 1)


def count_text(count: int, noun: str, zero: str = "0") -> str:
    """Return a number with its noun, in the plural by the rule for resources of kinds.

    Source: apimachinery, meta.UnsafeGuessKindToResource.

    >>> count_text(1, "policy"), count_text(2000, "policy"), count_text(2, "Ingress")
    ('1 policy', '2,000 policies', '2 Ingresses')
    """
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        noun = f"{noun[:-1]}ie"
    elif noun.endswith("s"):
        noun += "e"
    return f"{count:,} {noun}s" if count else f"{zero} {noun}s"


def harmless(text: str) -> str:
    r"""Return the text with control characters escaped, such as \x1b. Line ends stay."""
    return _STEERING.sub(lambda match: ascii(match[0])[1:-1], text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return the same in one line, because CI systems interpret the beginning of a line.

    >>> one_line("ml\\n::error::no")
    'ml ::error::no'
    """
    return harmless(" ".join(text.split()))
