"""Rewrites the result tables of docs/benchmarks.md, each between two markers."""

from __future__ import annotations

import datetime
import os
import platform
import re
from pathlib import Path
from typing import Final

from webhook.sandbox.modules import KUBERNETES

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def rewrite(document: str, part: str, text: str) -> str:
    """The document with the text between the part's markers. Raises ValueError without them."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not between.search(document):
        raise ValueError(f"{DOCUMENT.name} has no markers for {part}: {begin} and {end}")
    return between.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", document)


def circumstances(rounds: int) -> str:
    """On what, and when, the figures below were measured."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return (
        f"_Measured on {today}: {os.cpu_count()} cores ({_processor()}), "
        f"{platform.system()} {platform.release().partition('-')[0]}, "
        f"Python {platform.python_version()}, Kubernetes {KUBERNETES.version}; {rounds} rounds._"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.machine()
