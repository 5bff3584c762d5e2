"""Text of others, made harmless for a terminal: what would steer it is shown instead.

A program's last words, which its author writes, stand in the status of a Run, and an admin reads
them. With escape sequences they could rewrite the screen, or what is about to be pasted.
"""

from __future__ import annotations

import re
from typing import Final

# Controls of both sets (ECMA-48) but for line ends and tabs, and what turns the direction of text
# around (Unicode's Bidi_Control), which makes it read otherwise than it is.
_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def harmless(text: str) -> str:
    r"""The text with each such character as its escape, such as \x1b. Lines stay lines."""
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same in one line: what stands at the beginning of another means something to CI systems.

    >>> one_line("ml\\n::error::no")
    'ml ::error::no'
    """
    return harmless(" ".join(text.split()))
