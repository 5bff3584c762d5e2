"""`python -m tools.site [VERSION]`: make one static site of README, docs and policies.

The order of the pages is that of docs/README.md. A link to a page, file or heading that is not
there ends it with exit code 1. With FAIRLEAD_REPOSITORY, the address of a repository on GitHub or
the like, each page has a link to edit it. With FAIRLEAD_SITE, the address at which the site is
served, sitemap.xml has whole addresses. The site is in dist/site; with a VERSION in
dist/site/VERSION, and each page lets its reader choose among the versions there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from tools.site_links import dead_links, relink, targets
from tools.site_search import compact
from webhook import __version__

ROOT: Final = Path(__file__).parents[1]
INDEX: Final = Path("docs/README.md")
README: Final = Path("README.md")
OUTPUT: Final = ROOT / "dist" / "site"
# Templates that replace those of the generator, with the style of the home page.
THEME: Final = ROOT / "tools" / "theme"
HOME: Final = "---\ntemplate: home.html\ntitle: Fairlead\nhide: [navigation, toc]\n---\n"
# Pages that the site has at another place than the repository: the site has a home page.
MOVED: Final = {README: Path("overview.md")}
_PAGES: Final = ("*.md", "docs/**/*.md", "policies/*.md")
_IMAGES: Final = ("docs/images/*.png", "docs/images/*.svg")
_ITEM: Final = re.compile(r"\[([^\]]+)\]\(([^)#]+)\)")
_FENCES: Final = [
    {
        "name": "mermaid",
        "class": "mermaid",
        "format": "pymdownx.superfences.fence_code_format",
    }
]
# Scheme, what the system of the reader has to prefer, icon and name of the button to the next.
_PALETTES: Final = (
    ("default", "", "monitor", "Use light colours"),
    ("default", ": light", "sun", "Use dark colours"),
    ("slate", ": dark", "moon", "Use the colours of the system"),
)


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages of the repository that the site has, relative to the root."""
    return _find(root, _PAGES)


def _find(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path.relative_to(root) for pattern in patterns for path in root.glob(pattern)})


def staged(root: Path = ROOT) -> dict[Path, str]:
    """Return the texts from which the site is made, by their paths.

    These are the pages with links to where their targets are on the site, the home page, and a
    list for each folder to which a page links.
    """
    texts = {page: (root / page).read_text() for page in pages(root)}
    linked = {target.path for page, text in texts.items() for target in targets(page, text)}
    folders = [path for path in linked if (root / path).is_dir() and path / README not in texts]
    moved = {**MOVED, **{path: path / "index.md" for path in folders}}
    made = {Path("index.md"): HOME}
    made |= {path / "index.md": _list_of(path, texts) for path in folders}
    for page, text in texts.items():
        edit = f"---\nedit: {page}\n---\n" if page in MOVED else ""
        made[MOVED.get(page, page)] = edit + relink(page, text, moved)
    return made


def _list_of(folder: Path, texts: dict[Path, str]) -> str:
    """Return a page with a link to each page of a folder."""
    titles = {
        page.name: text.partition("\n")[0].removeprefix("# ")
        for page, text in texts.items()
        if page.parent == folder
    }
    lines = [f"- [{title}]({name})" for name, title in titles.items()]
    return "\n".join(["---", 'edit: ""', "---", f"# {folder.name.title()}", "", *lines, ""])


def files(root: Path = ROOT) -> list[Path]:
    """Return what the site has beside its pages: pictures, and all files to which a page links."""
    linked = {
        target.path
        for page in pages(root)
        for target in targets(page, (root / page).read_text())
        if target.path.suffix != ".md" and (root / target.path).is_file()
    }
    return sorted({*_find(root, _IMAGES), *linked})


def nav(root: Path = ROOT) -> list[Any]:
    """Return the navigation: the sections and links of docs/README.md, then all decisions."""
    tree: list[Any] = [{"Home": "index.md"}]
    into = tree
    for line in (root / INDEX).read_text().splitlines():
        if line.startswith("## "):
            section: list[Any] = []
            tree.append({line.removeprefix("## ").partition(":")[0]: section})
            into = section
        elif line.endswith(":") and len(tree) > 1:
            into = []
            (section,) = tree[-1].values()
            section.append({line.removesuffix(":"): into})
        elif line.startswith("- "):
            links = _ITEM.findall(line.partition("): ")[0] + ")")
            into += [
                {title[0].upper() + title[1:]: _from_root(link)}
                for title, link in links
                if link.endswith(".md")
            ]
    decisions = [page for page in staged(root) if page.parent == Path("docs/decisions")]
    tree.append({"Decisions": [str(page) for page in decisions]})
    return [*tree, {"All pages": str(INDEX)}]


def _from_root(link: str) -> str:
    page = Path(os.path.normpath(INDEX.parent / link))
    return str(MOVED.get(page, page))


def config(root: Path = ROOT, *, version: str = "") -> dict[str, Any]:
    """Return what the generator reads."""
    repository = os.environ.get("FAIRLEAD_REPOSITORY", "")
    edit = {"repo_url": repository, "edit_uri": "edit/main/"} if repository else {}
    site = {"site_url": address(version)} if urlsplit(address(version)).scheme else {}
    return {
        "site_name": "Fairlead",
        "site_description": "Placement of machine-learning runs on Kubernetes, by policies.",
        "docs_dir": "pages",
        "site_dir": "site",
        "copyright": f"Fairlead {__version__}",
        **site,
        **edit,
        # The list is versions.json in the folder above; without one there is nothing to choose.
        "extra": {"version": {"provider": "mike"}} if version else {},
        "extra_css": ["site.css"],
        "theme": {
            "name": "material",
            "custom_dir": "theme",
            # No page asks another site for fonts.
            "font": False,
            "features": [
                "content.code.copy",
                "navigation.footer",
                "navigation.indexes",
                # A page has the links of its section alone.
                "navigation.prune",
                "navigation.tabs",
                "navigation.top",
                "search.highlight",
                *(["content.action.edit"] if repository else []),
            ],
            "palette": [_palette(*row) for row in _PALETTES],
        },
        "markdown_extensions": [
            "attr_list",
            "tables",
            {"toc": {"permalink": True}},
            {"pymdownx.superfences": {"custom_fences": _FENCES}},
            "pymdownx.highlight",
        ],
        "nav": nav(root),
    }


def _palette(scheme: str, media: str, icon: str, name: str) -> dict[str, Any]:
    return {
        "scheme": scheme,
        "media": f"(prefers-color-scheme{media})",
        "toggle": {"icon": f"lucide/{icon}", "name": name},
    }


def address(version: str = "") -> str:
    """Return the address of a version's home page; without FAIRLEAD_SITE only its path."""
    site = os.environ.get("FAIRLEAD_SITE", "/").rstrip("/")
    return f"{site}/{version}/" if version else f"{site}/"


def build(output: Path = OUTPUT, root: Path = ROOT, version: str = "") -> None:
    """Make the site. Raises DeadLinks, or CalledProcessError of the generator, if a link is."""
    target = output / version
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        for path in files(root):
            _write(stage / "pages" / path, (root / path).read_bytes())
        for path, text in staged(root).items():
            _write(stage / "pages" / path, text.encode())
        shutil.copytree(THEME, stage / "theme")
        shutil.move(stage / "theme" / "site.css", stage / "pages" / "site.css")
        text = yaml.safe_dump(config(root, version=version), sort_keys=False)
        # The generator takes this for the function that it names.
        name = _FENCES[0]["format"]
        text = text.replace(f"format: {name}", f"format: !!python/name:{name}")
        (stage / "mkdocs.yml").write_text(text)
        program = Path(sys.executable).with_name("zensical")
        subprocess.run([program, "build", "--strict"], cwd=stage, check=True)  # noqa: S603
        _finish(stage / "site", version)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(stage / "site", target)
    if version:
        _list_versions(output)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _finish(site: Path, version: str) -> None:
    """Check each link, make the search small, and list the pages. Raises DeadLinks."""
    built = [*sorted(site.rglob("index.html")), site / "404.html"]
    if dead := dead_links(site, built, urlsplit(address(version)).path):
        raise DeadLinks(dead)
    folders = [page.parent.relative_to(site).as_posix() for page in built[:-1]]
    places = ["" if folder == "." else f"{folder}/" for folder in folders]
    texts = {place: page.read_text() for place, page in zip(places, built, strict=False)}
    index = json.loads((site / "search.json").read_text())
    small = {**index, "items": [*compact(index["items"], texts)]}
    (site / "search.json").write_text(json.dumps(small, ensure_ascii=False, separators=(",", ":")))
    listed = [f" <url><loc>{address(version)}{place}</loc></url>" for place in places]
    begin = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', begin, *listed, "</urlset>", ""]
    (site / "sitemap.xml").write_text("\n".join(lines))


class DeadLinks(Exception):
    """Links of built pages that lead nowhere, as PAGE: LINK."""

    def __init__(self, links: list[str]) -> None:
        super().__init__("\n".join(["links that lead nowhere:", *links]))


def _list_versions(output: Path) -> None:
    """Write the list of the versions that are there, the newest first, and a page that opens it.

    Hosts answer with 404.html at the top, which is that of the newest.
    """
    versions = [path.parent.name for path in output.glob("*/search.json")]
    versions.sort(
        key=lambda name: [int(number) for number in re.findall(r"\d+", name)], reverse=True
    )
    listed = [{"version": version, "title": version, "aliases": []} for version in versions]
    (output / "versions.json").write_text(json.dumps(listed))
    first = f'<meta http-equiv="refresh" content="0; url={versions[0]}/">\n'
    (output / "index.html").write_text(first)
    shutil.copyfile(output / versions[0] / "404.html", output / "404.html")


if __name__ == "__main__":
    chosen = "".join(sys.argv[1:])
    try:
        build(version=chosen)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    except DeadLinks as error:
        sys.exit(f"error: {error}")
    print((OUTPUT / chosen).relative_to(ROOT))
