"""Rewrites the result tables of a document, each between two markers."""

from __future__ import annotations

import datetime
import os
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.sandbox.binaries import KUBERNETES

if TYPE_CHECKING:
    from collections.abc import Iterable

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def check(parts: Iterable[str], document: Path = DOCUMENT) -> None:
    """Raise ValueError if the document lacks the markers of one of the parts."""
    content = document.read_text()
    for part in parts:
        _between(content, part, document)


def write(part: str, text: str, document: Path = DOCUMENT) -> None:
    """Put the text between the part's markers. Raises ValueError without them."""
    content = document.read_text()
    first, last = _between(content, part, document)
    document.write_text(f"{content[:first]}\n\n{text}\n\n{content[last:]}")


def _between(content: str, part: str, document: Path) -> tuple[int, int]:
    """Where the part's text begins and ends."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    if begin not in content or end not in content:
        raise ValueError(f"{document.name} has no markers for {part}: {begin} and {end}")
    return content.index(begin) + len(begin), content.index(end)


def circumstances(rounds: int | None) -> str:
    """On what, and when, the figures below were measured, and in how many rounds."""
    counted = "" if rounds is None else f"; {rounds} rounds"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return f"_Measured on {today}: {machine()}{counted}._"


def machine() -> str:
    """Processor, system and versions."""
    return (
        f"{os.cpu_count()} cores ({_processor()}), "
        f"{platform.system()} {platform.release().partition('-')[0]}, "
        f"Python {platform.python_version()}, Kubernetes {KUBERNETES.version}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.machine()
