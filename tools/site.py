"""`python -m tools.site [VERSION]`: make one static site of README, docs and policies.

The order of the pages is that of docs/README.md. A link to a page or heading that is not there ends
it with exit code 1. With FAIRLEAD_REPOSITORY, the address of a repository on GitHub or the like,
each page has a link to edit it. The site is in dist/site; with a VERSION in dist/site/VERSION, and
each page lets its reader choose among the versions there.
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

import yaml

from webhook import __version__

ROOT: Final = Path(__file__).parents[1]
INDEX: Final = Path("docs/README.md")
OUTPUT: Final = ROOT / "dist" / "site"
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


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages of the site, relative to the root."""
    return _find(root, _PAGES)


def _find(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path.relative_to(root) for pattern in patterns for path in root.glob(pattern)})


def nav(root: Path = ROOT) -> list[Any]:
    """Return the navigation: the sections and links of docs/README.md, then all decisions."""
    tree: list[Any] = [{"Fairlead": "README.md"}, {"All pages": str(INDEX)}]
    into = tree
    for line in (root / INDEX).read_text().splitlines():
        if line.startswith("## "):
            section: list[Any] = []
            tree.append({line.removeprefix("## ").partition(":")[0]: section})
            into = section
        elif line.endswith(":") and len(tree) > 2:
            into = []
            (section,) = tree[-1].values()
            section.append({line.removesuffix(":"): into})
        elif line.startswith("- "):
            links = _ITEM.findall(line.partition("): ")[0] + ")")
            into += [{title: _from_root(link)} for title, link in links if link.endswith(".md")]
    decisions = sorted((root / "docs" / "decisions").glob("*.md"))
    tree.append({"Decisions": [str(path.relative_to(root)) for path in decisions]})
    return tree


def _from_root(link: str) -> str:
    return os.path.normpath(INDEX.parent / link)


def config(root: Path = ROOT, *, versioned: bool = False) -> dict[str, Any]:
    """Return what the generator reads."""
    repository = os.environ.get("FAIRLEAD_REPOSITORY", "")
    edit = {"repo_url": repository, "edit_uri": "edit/main/"} if repository else {}
    return {
        "site_name": "Fairlead",
        "docs_dir": "pages",
        "site_dir": "site",
        "copyright": f"Fairlead {__version__}",
        **edit,
        # The list is versions.json in the folder above; without one there is nothing to choose.
        "extra": {"version": {"provider": "mike"}} if versioned else {},
        "theme": {
            "name": "material",
            # No page asks another site for fonts.
            "font": False,
            "features": [
                "content.code.copy",
                "navigation.footer",
                "navigation.top",
                "search.highlight",
                *(["content.action.edit"] if repository else []),
            ],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
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


def build(output: Path = OUTPUT, root: Path = ROOT, version: str = "") -> None:
    """Make the site. Raises CalledProcessError if a link leads nowhere."""
    target = output / version
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        for page in [*pages(root), *_find(root, _IMAGES)]:
            copy = stage / "pages" / page
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / page, copy)
        text = yaml.safe_dump(config(root, versioned=bool(version)), sort_keys=False)
        # The generator takes this for the function that it names.
        name = _FENCES[0]["format"]
        text = text.replace(f"format: {name}", f"format: !!python/name:{name}")
        (stage / "mkdocs.yml").write_text(text)
        program = Path(sys.executable).with_name("zensical")
        subprocess.run([program, "build", "--strict"], cwd=stage, check=True)  # noqa: S603
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(stage / "site", target)
    if version:
        _list_versions(output)


def _list_versions(output: Path) -> None:
    """Write the list of the versions that are there, the newest first, and a page that opens it."""
    versions = [path.parent.name for path in output.glob("*/search.json")]
    versions.sort(
        key=lambda name: [int(number) for number in re.findall(r"\d+", name)], reverse=True
    )
    listed = [{"version": version, "title": version, "aliases": []} for version in versions]
    (output / "versions.json").write_text(json.dumps(listed))
    first = f'<meta http-equiv="refresh" content="0; url={versions[0]}/">\n'
    (output / "index.html").write_text(first)


if __name__ == "__main__":
    chosen = "".join(sys.argv[1:])
    try:
        build(version=chosen)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    print((OUTPUT / chosen).relative_to(ROOT))
