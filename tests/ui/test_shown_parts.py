"""A window that names the version that it has gets what differs, and no more."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

from webhook.ui.shown_parts import ShownParts, differences

LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


@given(LINES, LINES)
def test_the_parts_make_the_new_lines_of_the_old_ones(old: list[str], new: list[str]) -> None:
    """The last part first, so that no place moves; equal lines have no part."""
    made = list(old)
    parts = differences(old, new)
    for begin, end, lines in parts:
        made[begin:end] = lines
    assert made == new
    assert bool(parts) == (old != new)
    assert sum(len(lines) for _, _, lines in parts) <= len(new)


def test_one_square_of_a_thousand_is_one_line() -> None:
    """The rest is not sent again."""
    old = [f"<li>{at}</li>" for at in range(1000)]
    new = [*old[:500], "<li>lost</li>", *old[501:]]
    assert differences(old, new) == [(500, 501, ["<li>lost</li>"])]


def test_windows_share_what_is_made_and_each_gets_what_it_lacks() -> None:
    """A version that is not known any more is answered with all lines."""
    texts = iter(["a\nb\nc", "a\nx\nc", "a\nx\ny"])
    made: list[str] = []

    async def make() -> str:
        made.append(next(texts))
        return made[-1]

    async def looks() -> None:
        parts = ShownParts()
        first = (await parts.look("/", 1, make)).response("")
        assert body(first) == {"whole": True, "parts": [[0, 0, ["a", "b", "c"]]]}
        version = first.headers["etag"]
        assert (await parts.look("/", 1, make)).response(version).status_code == 304
        assert len(made) == 1, "nothing has changed"
        await asyncio.sleep(1.1)
        second = (await parts.look("/", 2, make)).response(version)
        assert body(second) == {"whole": False, "parts": [[1, 2, ["x"]]]}
        assert body((await parts.look("/", 2, make)).response('"of before"'))["whole"]
        assert len(made) == 2

    asyncio.run(looks())


def body(response: Response) -> dict[str, object]:
    """The JSON of a response."""
    found: dict[str, object] = json.loads(bytes(response.body))
    return found
