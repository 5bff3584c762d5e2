"""The files of a folder that go with a Run, and what stays behind."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pathspec import GitIgnoreSpec

from webhook.errors import UnreadableInput
from webhook.shortening import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Bytes. An object in etcd has at most 1.5 MiB, and base64 takes a third more.
MOST_CODE: Final = 900 * 1024
# In this order: what the second says counts.
_IGNORES: Final = (".gitignore", ".fairleadignore")
_CACHES: Final = ("__pycache__", "node_modules")
# A line of RFC 7468, and of OpenSSH's keys.
_PRIVATE_KEY: Final = re.compile(rb"^-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----", re.MULTILINE)
# Files named in an error.
_NAMED: Final = 5


class CodeFiles(NamedTuple):
    """Contents by path in the folder, and how many files and folders stay behind, by why."""

    files: Mapping[str, bytes]
    left_out: Mapping[str, int]

    def __str__(self) -> str:
        """How many files they are, how large, and what is not among them."""
        largest = max(self.files, key=lambda path: len(self.files[path]))
        text = f"{count_text(len(self.files), 'file')}, {_size(sum(map(len, self.files.values())))}"
        if len(self.files) > 1:
            text += f", the largest {largest} with {_size(len(self.files[largest]))}"
        if self.left_out:
            text += f"; left out: {_counts(self.left_out)}"
        return text


def read_code(folder: Path) -> CodeFiles:
    """Return the files of a folder without hidden ones, caches, links to folders, and what
    .gitignore and .fairleadignore there, or in a folder below, ignore.

    Raises UnreadableInput if they are too large together, if one cannot be read or leads out of
    the folder, and for private keys, as whoever may read ConfigMaps would have them.
    """
    left_out: Counter[str] = Counter()
    try:
        paths = {str(path.relative_to(folder)): path for path in _walk(folder, left_out)}
        inside = folder.resolve()
        problems = [
            f"{path}: it leads out of {folder}; copy the file, or name it in .fairleadignore"
            for path in paths.values()
            if not path.resolve().is_relative_to(inside)
        ]
        sizes = {name: path.stat().st_size for name, path in paths.items()}
        if (total := sum(sizes.values())) > MOST_CODE:
            first = sorted(sizes, key=lambda name: -sizes[name])[:_NAMED]
            largest = ", ".join(f"{name} with {_size(sizes[name])}" for name in first)
            cure = (
                "name what is not needed in .fairleadignore, build an image with the code, or put "
                "it on a volume (--volume)"
            )
            size, most = _size(total), _size(MOST_CODE)
            what = f"{size}, and a ConfigMap holds {most}; the largest are {largest}"
            problems.append(f"{folder}: {what}: {cure}")
        if problems:
            raise UnreadableInput(problems)
        files = {name: path.read_bytes() for name, path in paths.items()}
    except OSError as error:
        raise UnreadableInput([f"{error.filename}: {error.strerror}"]) from None
    if not files:
        but = f" but {_counts(left_out)}" if left_out else ""
        raise UnreadableInput([f"{folder}: it has no files{but}"])
    cure = "whoever may read ConfigMaps would have it; name it in .fairleadignore, or move it"
    keys = [name for name, content in files.items() if _PRIVATE_KEY.search(content)]
    if keys:
        raise UnreadableInput([f"{paths[name]}: it is a private key: {cure}" for name in keys])
    return CodeFiles(files, dict(left_out))


def _walk(folder: Path, left_out: Counter[str]) -> Iterator[Path]:
    """Yield the files that are not left out, and count the others. Raises OSError."""
    specs: dict[Path, GitIgnoreSpec] = {}

    def raise_it(error: OSError) -> None:
        raise error

    for where, folders, files in os.walk(folder, onerror=raise_it):
        at = Path(where)
        lines = [line for name in _IGNORES if name in files for line in _lines(at / name)]
        if lines:
            specs[at] = GitIgnoreSpec.from_lines(lines)
        kept = []
        for name in sorted(folders):
            if why := _why_folder(at / name, folder, specs):
                left_out[why] += 1
            else:
                kept.append(name)
        folders[:] = kept
        for name in sorted(files):
            path = at / name
            if name.startswith("."):
                left_out["hidden"] += 1
            elif _is_ignored(path, folder, specs):
                left_out["ignored"] += 1
            elif not path.is_file():
                left_out["no files"] += 1
            else:
                yield path


def _why_folder(path: Path, folder: Path, specs: Mapping[Path, GitIgnoreSpec]) -> str:
    """Return why a folder stays behind; empty if it does not."""
    if path.name.startswith("."):
        return "hidden"
    if path.name in _CACHES:
        return "caches"
    if path.is_symlink():
        return "links to folders"
    return "ignored" if _is_ignored(path, folder, specs, "/") else ""


def _is_ignored(
    path: Path, folder: Path, specs: Mapping[Path, GitIgnoreSpec], end: str = ""
) -> bool:
    """Return what the nearest file with a pattern for the path says (gitignore(5)).

    `end`: a slash for a folder.
    """
    for at in path.parents:
        if at in specs:
            included = specs[at].check_file(f"{path.relative_to(at)}{end}").include
            if included is not None:
                return included
        if at == folder:
            break
    return False


def _lines(file: Path) -> Sequence[str]:
    return file.read_text(errors="replace").splitlines()


def _counts(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {why}" for why, count in left_out.items())


def _size(count: int) -> str:
    return f"{count} bytes" if count < 1024 else f"{-(-count // 1024):,} KiB"
