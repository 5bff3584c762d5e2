"""The whole site is made, and each of its links and anchors leads somewhere."""

from __future__ import annotations

import html
import itertools
import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.messages import golden_messages, other_messages
from tools.site import ROOT, build, pages


def test_the_site_is_made_with_every_page_and_a_search(tmp_path: Path) -> None:
    """Strictly: a warning of the generator ends it."""
    build(tmp_path / "site")
    made = {
        str(path.parent.relative_to(tmp_path / "site")) for path in tmp_path.rglob("index.html")
    }
    for page in pages():
        folder = page.parent if page.name == "README.md" else page.with_suffix("")
        assert str(folder) in made
    page_text = (tmp_path / "site" / "docs" / "tutorial" / "index.html").read_text()
    loaded = re.findall(r"<(?:script|link)[^>]+(?:src|href)=\"?(https?:[^\"\s>]+)", page_text)
    assert loaded == []
    items = json.loads((tmp_path / "site" / "search.json").read_text())["items"]
    found = [html.unescape(re.sub(r"<[^>]+>", "", item["text"])) for item in items]
    assert any("afterPending" in text for text in found)
    # Every message is found by its text.
    for message in [*itertools.chain(*golden_messages().values()), *other_messages()]:
        text = " ".join(message.split())
        assert any(text in each for each in found), message


def test_a_link_to_nothing_ends_it(tmp_path: Path) -> None:
    """To a page, or to a heading of one."""
    for name, link in (("page", "docs/nosuch.md"), ("heading", "docs/tutorial.md#nosuch")):
        root = tmp_path / name
        for page in pages():
            copy = root / page
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text((ROOT / page).read_text())
        readme = root / "README.md"
        readme.write_text(f"{readme.read_text()}\n[x]({link})\n")
        with pytest.raises(subprocess.CalledProcessError):
            build(tmp_path / "site", root)
