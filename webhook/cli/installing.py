"""What `fairlead install` reads of the person's files, and how it says why it does not go on."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli import failing
from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from webhook.installation.patience import NotInTime
    from webhook.kube.client import Client


def files_of(folder: Path) -> dict[str, str]:
    """The policy files of a folder, by the names that they shall have in a ConfigMap.

    They are read as the webhook will read them. Raises InvalidDocuments with every finding, or
    UnreadableInput if there is none, or two would have one name.
    """
    from webhook.policy.load import load
    from webhook.server.folder import read_folder

    found = read_folder(folder)
    if not found:
        raise UnreadableInput([f"{folder}: no policies there (*.yaml, *.yml, *.json)"])
    load(found)
    files: dict[str, str] = {}
    for path, content in found.items():
        # A ConfigMap has no folders.
        relative = Path(path).relative_to(folder) if folder.is_dir() else Path(Path(path).name)
        name = "-".join(relative.parts)
        if name in files:
            raise UnreadableInput([f"{path}: another file becomes {name} too; rename one of them"])
        files[name] = content.decode()
    return files


async def explain(client: Client, error: NotInTime) -> None:
    """Say on stderr what was waited for, and what is wrong, each with its cure."""
    import webhook
    from webhook.cli import doctor_text
    from webhook.installation.doctor.diagnose import diagnose
    from webhook.installation.doctor.reading import Reader

    failing.tell(error)
    click.echo(err=True)
    seen = await Reader(client).read(datetime.now(UTC), webhook.__version__)
    for line in doctor_text.lines(diagnose(seen)):
        click.echo(line, err=True)
