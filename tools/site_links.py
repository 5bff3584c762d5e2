"""The links of the site: as its pages need them, and those that lead nowhere."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LINK: Final = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#\s])")
_TAG: Final = re.compile(r"<[a-z][^<>]*>", re.IGNORECASE)
_TARGET: Final = re.compile(r"""\s(?:href|src)=(?:"([^"]*)"|'([^']*)'|([^\s>]+))""")
_ANCHOR: Final = re.compile(r"""\s(?:id|name)=(?:"([^"]*)"|'([^']*)'|([^\s>]+))""")


class Target(NamedTuple):
    """What a link of a page leads to; the path is from the root of the repository."""

    link: str
    path: Path


def targets(page: Path, text: str) -> Iterator[Target]:
    """Yield what the links of a page lead to within the repository."""
    for link in _LINK.findall(text):
        if not urlsplit(link).scheme:
            yield Target(link, Path(os.path.normpath(page.parent / link)))


def relink(page: Path, text: str, moved: dict[Path, Path]) -> str:
    """Return the text of a page with links to where its targets are on the site."""
    new = {
        target.link: os.path.relpath(moved[target.path], page.parent)
        for target in targets(page, text)
        if target.path in moved
    }
    return _LINK.sub(lambda match: new.get(match[0], match[0]), text)


def dead_links(site: Path, pages: Iterable[Path], base: str = "/") -> list[str]:
    """Return the links and anchors of built pages that lead nowhere, as PAGE: LINK.

    Links from the root begin with `base`, the path at which the site is served.
    """
    texts = {page: page.read_text() for page in pages}
    anchors = {page: {*_values(_ANCHOR, text)} for page, text in texts.items()}
    dead = set()
    for page, text in texts.items():
        for link in _values(_TARGET, text):
            scheme, host, path, _, anchor = urlsplit(link)
            if scheme or host:
                continue
            file = page if not path else _file(site, page, unquote(path), base)
            wrong = not file.is_file() or (
                anchor and file in anchors and unquote(anchor) not in anchors[file]
            )
            if wrong:
                dead.add(f"{page.relative_to(site)}: {link}")
    return sorted(dead)


def _file(site: Path, page: Path, path: str, base: str) -> Path:
    """Return the file that a server answers with."""
    joined = site / path.removeprefix(base) if path.startswith("/") else page.parent / path
    file = Path(os.path.normpath(joined))
    return file / "index.html" if file.is_dir() else file


def _values(attribute: re.Pattern[str], text: str) -> Iterator[str]:
    for tag in _TAG.findall(text):
        for quoted, single, bare in attribute.findall(tag):
            yield html.unescape(quoted or single or bare)
