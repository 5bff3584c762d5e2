"""Read policy files from a folder, a mounted ConfigMap or a file.

A ConfigMap is mounted as links into a hidden folder whose name changes with every update:

    spot.yaml -> ..data/spot.yaml      ..data -> ..2026_11_20_08_15_00.123      ..2026_…/spot.yaml

So names that start with a dot are skipped, and every file is read once.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Callable

# A whole ConfigMap holds 1 MiB, so no policy file in it is larger.
MAX_FILE_BYTES: Final = 1 << 20
_CONFIG_MAP_LINK: Final = "..data"


def is_test_file(name: str) -> bool:
    """Return True if a file of this name holds policy tests; .YAML is .yaml."""
    return name.lower().endswith((".test.yaml", ".test.yml"))


def is_policy_file(name: str) -> bool:
    """Return True if a file of this name holds policies."""
    return name.lower().endswith((".yaml", ".yml", ".json")) and not is_test_file(name)


@dataclass(frozen=True, slots=True)
class Signature:
    """A folder's metadata, without any file's content.

    Equal signatures mean equal content, unless a file changed within the clock's resolution of
    `newest`: the latest change of any entry, in seconds since 1970.
    """

    entries: tuple[tuple[str | int, ...], ...]
    newest: float


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of files, or one file, that can be read repeatedly.

    In a folder, `wanted` selects files by name; a file given as the path is always read.
    """

    path: Path
    wanted: Callable[[str], bool] = is_policy_file

    def read(self) -> dict[str, bytes]:
        """Return the content of every file by path, sorted; {} if the folder has none.

        A path starts with the folder's own, as given. Subfolders are read too, links are followed,
        and a file with two names is read once, under the first. Raises UnreadableInput with all
        problems: a missing path, a file without read permission, a dangling link, a file over
        MAX_FILE_BYTES.
        """
        listing = self._walk()
        contents: dict[str, bytes] = {}
        for name in sorted(listing.files):
            try:
                contents[name] = _read_file(name)
            except OSError as error:
                listing.problems.append(f"{name}: {_text(error)}")
            except UnreadableInput as error:
                listing.problems.extend(error.problems)
        if listing.problems:
            raise UnreadableInput(listing.problems)
        return contents

    def signature(self) -> Signature:
        """Return the metadata of the files; raises nothing."""
        listing = self._walk()
        entries: list[tuple[str | int, ...]] = [(problem,) for problem in listing.problems]
        entries.extend(listing.links)
        newest = 0
        for name, status in sorted(listing.files.items()):
            entries.append(
                (
                    name,
                    status.st_dev,
                    status.st_ino,
                    status.st_size,
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                )
            )
            newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
        return Signature(tuple(entries), newest / 1e9)

    def _walk(self) -> _Found:
        listing = _Found()
        try:
            top = self.path.stat()
        except OSError as error:
            listing.problems.append(f"{self.path}: {_text(error)}")
            return listing
        if stat.S_ISDIR(top.st_mode):
            _walk_folder(str(self.path), top, self.wanted, listing)
        else:
            listing.files[str(self.path)] = top
        return listing


def read_folder(
    path: str | Path, *, wanted: Callable[[str], bool] = is_policy_file
) -> dict[str, bytes]:
    """Return the content of every wanted file at the path: see Folder.read."""
    return Folder(Path(path), wanted).read()


@dataclass(slots=True)
class _Found:
    files: dict[str, os.stat_result] = field(default_factory=dict)
    links: list[tuple[str | int, ...]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    visited: set[tuple[int, int]] = field(default_factory=set)

    def first_time(self, status: os.stat_result) -> bool:
        """Return True at the first call for this file or folder, under any name."""
        identity = (status.st_dev, status.st_ino)
        if identity in self.visited:
            return False
        self.visited.add(identity)
        return True


def _walk_folder(
    path: str, status: os.stat_result, wanted: Callable[[str], bool], listing: _Found
) -> None:
    # A link may lead to a parent folder: each folder is entered once.
    if not listing.first_time(status):
        return
    try:
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError as error:
        listing.problems.append(f"{path}: {_text(error)}")
        return
    for name in names:
        _walk_entry(path, name, wanted, listing)


def _walk_entry(path: str, name: str, wanted: Callable[[str], bool], listing: _Found) -> None:
    whole = f"{path.rstrip('/')}/{name}" if path != "." else name
    if name.startswith("."):
        if name == _CONFIG_MAP_LINK:
            listing.links.append((whole, _link_target(whole)))
        return
    try:
        status = Path(whole).stat()
    except OSError as error:
        # Other entries of the folder are ignored, including dangling links.
        if wanted(name):
            listing.problems.append(f"{whole}: {_text(error)}")
        return
    if stat.S_ISDIR(status.st_mode):
        _walk_folder(whole, status, wanted, listing)
    elif wanted(name):
        if not stat.S_ISREG(status.st_mode):
            listing.problems.append(f"{whole}: not a regular file; move it out of the folder")
        elif listing.first_time(status):
            listing.files[whole] = status


def _link_target(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError as error:
        return _text(error)


def _read_file(path: str) -> bytes:
    with Path(path).open("rb") as file:
        # One more byte shows that the limit is exceeded, whatever size the file system reports.
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise UnreadableInput(
            [f"{path}: over {MAX_FILE_BYTES} bytes, too large for a policy file; split it"]
        )
    return content


def _text(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder; check the path, and where a link leads"
    if isinstance(error, PermissionError):
        return "permission denied; make it readable for the user that runs fairlead"
    return error.strerror or str(error)
