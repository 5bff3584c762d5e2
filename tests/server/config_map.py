"""Mounts a ConfigMap as the kubelet does: links into a folder that is swapped as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def mount(folder: Path, version: str, files: Mapping[str, bytes]) -> None:
    """Make the folder show these files, whose names may hold one sub-folder.

    As the kubelet's atomic writer: a hidden folder with the new files, then the link to it
    replaced by a rename, links for each name on top, and the old hidden folder removed.
    """
    hidden = folder / f"..{version}"
    for name, content in files.items():
        path = hidden / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    data = folder / "..data"
    before = data.readlink() if data.is_symlink() else None
    fresh = folder / "..data_tmp"
    fresh.symlink_to(hidden.name)
    fresh.rename(data)
    tops = {name.split("/")[0] for name in files}
    for top in tops:
        link = folder / top
        if not link.is_symlink():
            link.symlink_to(f"..data/{top}")
    for link in folder.iterdir():
        if link.is_symlink() and not link.name.startswith("..") and link.name not in tops:
            link.unlink()
    if before is not None:
        for path in sorted((folder / before).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (folder / before).rmdir()
