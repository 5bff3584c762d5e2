"""Read the files that `fairlead install` takes: policies, and sources."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.errors import UnreadableInput
from webhook.judgement.set_judgement import load_sound
from webhook.policy.policy_documents import parse
from webhook.server.folder import read_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def sources_of(
    files: Sequence[Path], beside: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the names of the systems in the files, and the texts of files that are not `beside`.

    Raises InvalidDocuments, UnreadableInput and BadParameter.
    """
    found: list[str] = []
    texts: dict[str, str] = {}
    for file in files:
        if not file.exists():
            raise click.BadParameter(f"there is no file {file}", param_hint="--source")
        for content in read_folder(file).values():
            systems = [each.model for each in parse({str(file): content}).sound()]
            if wrong := [each for each in systems if each.kind != "RunSource"]:
                what = f"{file} has a {wrong[0].kind}; want documents RunSource only"
                raise click.BadParameter(what, param_hint="--source")
            found += [each.name for each in systems]
            if beside.get(file.name) != content.decode():
                texts[file.name] = content.decode()
    return found, texts


def files_of(folder: Path) -> dict[str, str]:
    """Return the policy files of a folder, by the names that they shall have in a ConfigMap.

    They are read as the webhook will read them. Raises InvalidDocuments with every finding, or
    UnreadableInput if there is none, or two would have one name.
    """
    found = read_folder(folder)
    if not found:
        raise UnreadableInput([f"{folder}: no policies there (*.yaml, *.yml, *.json)"])
    load_sound(found)
    files: dict[str, str] = {}
    for path, content in found.items():
        # A ConfigMap has no folders.
        relative = Path(path).relative_to(folder) if folder.is_dir() else Path(Path(path).name)
        name = "-".join(relative.parts)
        if name in files:
            raise UnreadableInput(
                [f"{path}: another file would also become {name}; rename one of them"]
            )
        files[name] = content.decode()
    return files
