"""Policy files as they stood in a revision of a git repository; no work tree is touched."""

from __future__ import annotations

import os
import posixpath
import shutil
import subprocess
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.errors import UnreadableInput
from webhook.server.folder import MAX_FILE_BYTES, is_policy_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Seconds. What is read is local, unless objects of a partial clone must be fetched.
_PATIENCE: Final = 120
_LINK: Final = "120000"


class _Entry(NamedTuple):
    """One file of a tree: `link` tells that its content is a path."""

    name: str
    blob: str
    size: int
    link: bool


def read_revision(where: str) -> dict[str, bytes]:
    """The policy files of REV:PATH by name, a folder with all in it or one file.

    Names start with REV:PATH; those that start with a dot are passed over, as in any folder. A
    link to a file in the folder is read once; one that leads elsewhere is refused, for what it led
    to is not known. Raises UnreadableInput, with what git says.
    """
    revision, _, _ = where.partition(":")
    if not revision or revision.startswith("-"):
        raise UnreadableInput([f"{where}: want REV:PATH, as in main:policies"])
    _git(where, "rev-parse", "--verify", f"{revision}^{{tree}}")
    found = _git(where, "rev-parse", where).decode().strip()
    if _git(where, "cat-file", "-t", found).strip() == b"blob":
        return {where: _git(where, "cat-file", "blob", found)}
    entries = {entry.name: entry for entry in _entries(where, found)}
    wanted = [
        entry
        for entry in entries.values()
        if is_policy_file(entry.name)
        and not any(part.startswith(".") for part in entry.name.split("/"))
    ]
    problems = [
        f"{where}/{entry.name}: over {MAX_FILE_BYTES} bytes, too large for a policy file; split it"
        for entry in wanted
        if entry.size > MAX_FILE_BYTES
    ]
    if problems:
        raise UnreadableInput(problems)
    contents = _contents(where, [entry.blob for entry in wanted])
    files: dict[str, bytes] = {}
    for entry in wanted:
        content = contents[entry.blob]
        if not entry.link:
            files[f"{where.rstrip('/')}/{entry.name}"] = content
        elif not _leads_to(entry, content, entries):
            problems.append(
                f"{where}/{entry.name}: a link to {content.decode(errors='replace')}, which is no "
                "policy file of this folder; put the file itself there"
            )
    if problems:
        raise UnreadableInput(problems)
    return files


def _leads_to(link: _Entry, target: bytes, entries: Mapping[str, _Entry]) -> bool:
    """Whether a link leads to a policy file that is read under its own name."""
    folder = posixpath.dirname(link.name)
    name = posixpath.normpath(posixpath.join(folder, target.decode(errors="replace")))
    found = entries.get(name)
    return found is not None and not found.link and is_policy_file(name)


def _entries(where: str, tree: str) -> Iterable[_Entry]:
    # Without --full-tree it would be told from the folder where the command is called.
    listed = _git(where, "ls-tree", "-r", "-l", "-z", "--full-tree", tree)
    for line in listed.split(b"\0"):
        if line:
            facts, _, name = line.partition(b"\t")
            mode, kind, blob, size = facts.decode().split()
            if kind == "blob":
                yield _Entry(os.fsdecode(name), blob, int(size), mode == _LINK)


def _contents(where: str, blobs: Iterable[str]) -> dict[str, bytes]:
    """The contents by blob. Source of the format: git-cat-file(1), BATCH OUTPUT."""
    asked = list(dict.fromkeys(blobs))
    output = _git(where, "cat-file", "--batch", stdin="\n".join(asked).encode())
    found: dict[str, bytes] = {}
    at = 0
    for blob in asked:
        head, _, _ = output[at:].partition(b"\n")
        size = int(head.split()[-1])
        start = at + len(head) + 1
        found[blob] = output[start : start + size]
        at = start + size + 1
    return found


def _git(where: str, *arguments: str, stdin: bytes = b"") -> bytes:
    program = shutil.which("git")
    if program is None:
        raise UnreadableInput([f"{where}: there is no git here to read it; install git"])
    # In English, since what it says is looked at; and it shall ask nobody for a password.
    environ = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(  # noqa: S603  no shell, and no option comes from what was said
            [program, *arguments],
            input=stdin,
            capture_output=True,
            env=environ,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnreadableInput([f"{where}: git did not answer within {_PATIENCE} s"]) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or "no words"
        raise UnreadableInput([f"{where}: {_cured(where, said)}"])
    return done.stdout


def _cured(where: str, said: str) -> str:
    """What git says, and what to do about it."""
    words = " ".join(line.strip() for line in said.splitlines()).removeprefix("fatal: ")
    revision, _, path = where.partition(":")
    if "Needed a single revision" in words:
        return (
            f"git does not know the revision {revision} here; in a shallow clone fetch it first, "
            f"as in: git fetch origin {revision}"
        )
    if "does not exist" in words:
        return (
            f"git says: {words}; paths go from the top of the repository, and from here as "
            f"{revision}:./{path}"
        )
    return f"git says: {words}"
