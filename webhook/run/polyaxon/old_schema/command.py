"""The commands of the old schema's run section, as a container has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.polyaxon.section import Section
from webhook.run.polyaxon.values import want_texts

if TYPE_CHECKING:
    from webhook.run.polyaxon.draft import Draft
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes

SHELL: Final = ("/bin/bash", "-c")


def script(run: Item | None, document: Item, notes: Notes) -> Draft:
    """What the shell is to do: `run.cmd`, one command or several that need each other."""
    if run is None:
        notes.error(document, "is required: the command, under run.cmd", below=("run",))
        return None
    section = Section(run, notes)
    cmd = section.given("cmd")
    section.close()
    if cmd is None:
        notes.error(run, "is required: the command", below=("cmd",))
        return None
    return cmd.saying(" && ".join(_in_one_line(text) for text in want_texts(cmd, notes)))


def _in_one_line(text: str) -> str:
    """As Polyaxon did it: words between single blanks, without the backslashes that join lines."""
    words = (word.strip("\\") for word in text.split())
    return " ".join(word for word in words if word)
