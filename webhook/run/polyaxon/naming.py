"""What a Run is called: a name that Kubernetes takes, whatever Polyaxon's was."""

from __future__ import annotations

import re
from typing import Final

from webhook.placement.schema.syntax import MAX_NAME

_FOREIGN: Final = re.compile(r"[^a-z0-9]+")
_LETTER: Final = re.compile(r"[a-z]")
_FALLBACK: Final = "run"


def run_name(text: str, longest_suffix: int) -> str:
    """A DNS label that begins with a letter, and leaves room for `-worker-6`.

    Of `organisation/name:tag` only the name counts.
    """
    own = text.rpartition("/")[2].partition(":")[0]
    label = _FOREIGN.sub("-", own.lower()).strip("-")
    if not _LETTER.match(label):
        label = f"{_FALLBACK}-{label}".strip("-")
    return label[: MAX_NAME - longest_suffix].rstrip("-")


def file_name(path: str) -> str:
    """What a file is called, without its folder and its suffix."""
    return path.replace("\\", "/").rpartition("/")[2].partition(".")[0]
