"""The whole site is made, and each of its links and anchors leads somewhere."""

from __future__ import annotations

import html
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.messages import golden_messages, other_messages
from tools.site import ROOT, build, pages
from webhook import __version__


def test_the_site_is_made_with_every_page_and_a_search(tmp_path: Path) -> None:
    """Strictly: a warning of the generator ends it."""
    build(tmp_path / "site")
    made = {
        str(path.parent.relative_to(tmp_path / "site")) for path in tmp_path.rglob("index.html")
    }
    for page in pages():
        folder = page.parent if page.name == "README.md" else page.with_suffix("")
        assert str(folder) in made
    for html_page in tmp_path.rglob("index.html"):
        for picture in re.findall(r"<img[^>]+src=\"?([^\"\s>#]+)", html_page.read_text()):
            assert (html_page.parent / picture).exists(), (html_page, picture)
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


def test_versions_are_beside_each_other_and_each_page_can_be_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest is opened first; the page to edit is that in the repository that is named."""
    monkeypatch.setenv("FAIRLEAD_REPOSITORY", "https://git.example.com/fairlead")
    for version in ("0.10.0", "0.9.0"):
        build(tmp_path, version=version)
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [each["version"] for each in listed] == ["0.10.0", "0.9.0"]
    assert "url=0.10.0/" in (tmp_path / "index.html").read_text()
    page = (tmp_path / "0.9.0" / "docs" / "tutorial" / "index.html").read_text()
    assert '"version":{"provider":"mike"}' in page
    assert "https://git.example.com/fairlead/edit/main/docs/tutorial.md" in page
    assert f"Fairlead {__version__}" in page


def test_a_link_to_nothing_ends_it(tmp_path: Path) -> None:
    """To a page, or to a heading of one."""
    for name, link in (("page", "docs/nosuch.md"), ("heading", "docs/tutorial.md#nosuch")):
        root = tmp_path / name
        for page in pages():
            copy = root / page
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text((ROOT / page).read_text())
        shutil.copytree(ROOT / "docs" / "images", root / "docs" / "images")
        readme = root / "README.md"
        readme.write_text(f"{readme.read_text()}\n[x]({link})\n")
        with pytest.raises(subprocess.CalledProcessError):
            build(tmp_path / "site", root)
