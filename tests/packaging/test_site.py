"""The whole site is made, and each of its links and anchors leads somewhere."""

from __future__ import annotations

import gzip
import html
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.messages import golden_messages, other_messages, scheduler_messages
from tools.site import MOVED, ROOT, DeadLinks, build, files, pages
from tools.site_links import dead_links
from webhook import __version__


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


def text_of(page: Path) -> str:
    """The words of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.read_text())).split())


def test_the_site_has_every_page_and_each_picture(site: Path) -> None:
    """Strictly: a warning of the generator ends it. Nothing is loaded from elsewhere."""
    made = {path.parent.relative_to(site) for path in site.rglob("index.html")}
    for page in pages():
        folder = page.parent if page.name == "README.md" else page.with_suffix("")
        assert MOVED.get(page, folder).with_suffix("") in made
    assert dead_links(site, site.rglob("*.html")) == []
    for page in (site / "index.html", site / "docs" / "tutorial" / "index.html"):
        text = page.read_text()
        loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\"\s>]+)", text)
        assert loaded == []


def test_what_pages_link_to_is_there(site: Path) -> None:
    """Notebooks, schemas and tests as files; a folder as a list of its pages."""
    for file in ("docs/train.ipynb", "schemas/pods.json", "tests/cluster/test_doctor.py"):
        assert (site / file).is_file()
    assert "Record decisions" in text_of(site / "docs" / "decisions" / "index.html")


def test_each_page_has_a_title_of_its_own(site: Path) -> None:
    """That of the home page says what Fairlead is."""
    titles = {
        page: html.unescape(re.findall(r"<title>([^<]*)", page.read_text())[0])
        for page in site.rglob("*.html")
    }
    assert (
        titles[site / "index.html"] == "Fairlead: every pod of a training run, on the right nodes"
    )
    assert len({*titles.values()}) == len(titles)


def test_the_home_page_shows_what_is_true(site: Path) -> None:
    """Its terminals are those of the pages, and a figure is where its link leads."""
    home = (site / "index.html").read_text()
    sources = [ROOT / page for page in ("README.md", "docs/guides/nodes.md", "docs/installing.md")]
    shown = " ".join(" ".join(page.read_text() for page in sources).split())
    lines = re.findall(
        r"<p>(.*?)</p>", "".join(re.findall(r'"terminal".*?</div>', home, re.DOTALL))
    )
    assert len(lines) == 11
    for line in lines:
        plain = html.unescape(re.sub(r"<[^>]+>", "", line)).removeprefix("$ ").strip("…")
        for part in plain.split(" && "):
            assert " ".join(part.split()) in shown, part
    figures = re.findall(r'class="?figure"? href="?([^">]+)"?><b>([^<]+)</b>(.*?)<span>', home)
    assert len(figures) == 4
    for link, figure, about in figures:
        page, _, anchor = link.partition("#")
        text = (site / page / "index.html").read_text().partition(f'id="{anchor}"')[2]
        section = " ".join(re.sub(r"<[^>]+>", " ", text.partition("<h2")[0]).split())
        for number in re.findall(r"[\d,.]*\d", f"{figure} {about}"):
            assert number in section, (link, number)


def test_the_sitemap_has_every_page(site: Path) -> None:
    """With whole addresses if the address of the site is known."""
    places = re.findall(r"<loc>/([^<]*)</loc>", (site / "sitemap.xml").read_text())
    folders = {page.parent.relative_to(site).as_posix() for page in site.rglob("index.html")}
    assert {place.rstrip("/") or "." for place in places} == folders


def test_the_page_that_is_not_there_leads_on(site: Path) -> None:
    """From any address: its links begin at the root of the site."""
    page = site / "404.html"
    assert "This page is not here" in text_of(page)
    links = re.findall(r"(?:href|src)=\"?([^\"\s>]+)", page.read_text())
    assert [link for link in links if not link.startswith(("/", "#", "http"))] == []


def test_the_search_is_small_and_leads_to_each_message(site: Path) -> None:
    """Every word of users' pages is in it, and it is fetched when somebody searches."""
    index = (site / "search.json").read_bytes()
    assert len(index) < 1_200_000
    assert len(gzip.compress(index)) < 300_000
    items = json.loads(index)["items"]
    found = {
        html.unescape(re.sub(r"<[^>]+>", "", f"{item['title']} {item['text']}")): item["location"]
        for item in items
    }
    assert any("afterPending" in text for text in found)
    shown = "\n".join(found)
    messages = itertools.chain(*golden_messages().values(), other_messages(), scheduler_messages())
    for message in messages:
        text = " ".join(message.text.split())
        assert text in shown, text
    places = [place for text, place in found.items() if "untolerated taint" in text]
    assert any(re.search(r"reference/messages/.*#m[0-9a-f]{8}$", place) for place in places)
    script = (site / "index.html").read_text()
    assert script.index("/search.json") < script.index("bundle.")


def test_versions_are_beside_each_other_and_each_page_can_be_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest is opened first; the page to edit is that in the repository that is named."""
    monkeypatch.setenv("FAIRLEAD_REPOSITORY", "https://git.example.com/fairlead")
    monkeypatch.setenv("FAIRLEAD_SITE", "https://docs.example.com/fairlead")
    for version in ("0.10.0", "0.9.0"):
        build(tmp_path, version=version)
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [each["version"] for each in listed] == ["0.10.0", "0.9.0"]
    assert "url=0.10.0/" in (tmp_path / "index.html").read_text()
    page = (tmp_path / "0.9.0" / "docs" / "tutorial" / "index.html").read_text()
    assert '"version":{"provider":"mike"}' in page
    assert "https://git.example.com/fairlead/edit/main/docs/tutorial.md" in page
    assert f"Fairlead {__version__}" in page
    overview = (tmp_path / "0.9.0" / "overview" / "index.html").read_text()
    assert "https://git.example.com/fairlead/edit/main/README.md" in overview
    place = "https://docs.example.com/fairlead/0.9.0/docs/tutorial/"
    assert f"<loc>{place}</loc>" in (tmp_path / "0.9.0" / "sitemap.xml").read_text()
    assert '"/fairlead/0.10.0/docs/"' in (tmp_path / "404.html").read_text()


@pytest.mark.parametrize(
    "link",
    ["docs/nosuch.md", "docs/tutorial.md#nosuch", "docs/nosuch/", "docs/nosuch.ipynb"],
)
def test_a_link_to_nothing_ends_it(tmp_path: Path, link: str) -> None:
    """To a page, a heading, a folder or a file."""
    root = tmp_path / "root"
    for page in [*pages(), *files()]:
        copy = root / page
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / page, copy)
    readme = root / "README.md"
    readme.write_text(f"{readme.read_text()}\n[x]({link})\n")
    with pytest.raises((subprocess.CalledProcessError, DeadLinks)):
        build(tmp_path / "site", root)
