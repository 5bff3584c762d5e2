"""The two policy sets of a comparison: from a folder, a git revision or a cluster."""

from __future__ import annotations

import os
import posixpath
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.cli.offline import NO_POLICIES, is_empty
from webhook.errors import UnreadableInput
from webhook.judgement.set_judgement import load_sound
from webhook.policy.load import load
from webhook.server.folder import MAX_FILE_BYTES, is_policy_file, read_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from webhook.policy.policy_set import PolicySet

CLUSTER: Final = "cluster"
# Seconds. git reads locally, unless it must fetch objects of a partial clone.
_PATIENCE: Final = 120
_LINK: Final = "120000"
# Maximum length of a chain of links, as in Linux.
_MOST: Final = 40


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a set, as given on the command line."""

    text: str

    @property
    def is_cluster(self) -> bool:
        """True for the word `cluster`; a folder of that name is ./cluster."""
        return self.text == CLUSTER

    @property
    def is_known(self) -> bool:
        """True if it can be one of the three."""
        return self.is_cluster or ":" in self.text or Path(self.text).exists()


def read_set(source: Source, *, sound: bool = True) -> PolicySet:
    """Return the set of a folder or a revision; `sound`: one that could come to serve.

    Raises UnreadableInput and InvalidDocuments.
    """
    text = source.text
    files = read_folder(text) if Path(text).exists() else read_revision(text)
    if not files:
        what = f"{text}: it has no policy file (*.yaml, *.yml, *.json)"
        raise UnreadableInput([f"{what}; use {NO_POLICIES} for no policies at all"])
    if is_empty(files):
        raise UnreadableInput([f"{text}: it is empty; use {NO_POLICIES} for no policies at all"])
    return load_sound(files) if sound else load(files).policies


class _Entry(NamedTuple):
    """One file of a tree; a `link` has a path as its content."""

    name: str
    kind: str
    blob: str
    size: int
    link: bool


def read_revision(where: str) -> dict[str, bytes]:
    """Return the policy files of REV:PATH by name, a folder with all in it or one file.

    Names start with REV:PATH. Files that start with a dot are skipped, as in any folder. The
    target of a link within the folder is read once. Links to other places are an error, because
    their target in that revision is unknown, and so are submodules. Raises UnreadableInput, with
    the message of git.
    """
    revision, _, _ = where.partition(":")
    if not revision or revision.startswith("-"):
        raise UnreadableInput([f"{where}: want REV:PATH, as in main:policies"])
    _git(where, "rev-parse", "--verify", f"{revision}^{{tree}}")
    _git(where, "rev-parse", where)
    kind, found = _followed(where, where)
    if kind == "blob":
        return {where: _git(where, "cat-file", "blob", found)}
    if kind != "tree":
        raise UnreadableInput([f"{where}: no file or folder of this repository; name one"])
    entries = {entry.name: entry for entry in _entries(where, found)}
    chosen, problems = _policy_files(where, entries)
    problems += [
        f"{where}/{name}: over {MAX_FILE_BYTES} bytes, too large for a policy file; split it"
        for name, entry in chosen.items()
        if entry.size > MAX_FILE_BYTES
    ]
    if problems:
        raise UnreadableInput(problems)
    contents = _contents(where, [entry.blob for entry in chosen.values()])
    return {
        f"{where.rstrip('/')}/{name}": contents[chosen[name].blob]
        for name in entries
        if name in chosen
    }


def _policy_files(where: str, entries: Mapping[str, _Entry]) -> tuple[dict[str, _Entry], list[str]]:
    """Return the files to read, by name, and errors about the others."""
    shown = [entry for entry in entries.values() if not is_hidden(entry.name)]
    texts = _contents(where, [entry.blob for entry in entries.values() if entry.link])
    links = {
        name: texts[entry.blob].decode(errors="replace")
        for name, entry in entries.items()
        if entry.link
    }
    problems = [
        f"{where}/{entry.name}: a submodule, whose files are in another repository; put the files "
        "themselves there"
        for entry in shown
        if entry.kind == "commit"
    ]
    chosen = {
        entry.name: entry
        for entry in shown
        if entry.kind == "blob" and not entry.link and is_policy_file(entry.name)
    }
    for name in (entry.name for entry in shown if entry.link):
        end = end_of(name, links)
        target = entries.get(end)
        if target is not None and target.kind == "blob" and not target.link:
            if is_policy_file(name) and all(each is not target for each in chosen.values()):
                chosen[name] = target
        elif is_policy_file(name) or not _is_no_matter(where, name, end, entries):
            problems.append(
                f"{where}/{name}: a link to {links[name]}, which is not a policy file in this "
                "folder; put the file itself there"
            )
    return chosen, problems


def _is_no_matter(where: str, link: str, end: str, entries: Mapping[str, _Entry]) -> bool:
    """Return True if a link, without the name of a policy file, cannot lead to policy files."""
    if is_folder_in(end, entries):
        return True
    within = where if where.endswith((":", "/")) else f"{where}/"
    kind, _ = _followed(where, f"{within}{link}")
    return kind not in ("tree", "symlink")


def _followed(where: str, name: str) -> tuple[str, str]:
    """Return the type of REV:PATH after following links, blob or tree, and its hash.

    Another type is an error: `symlink` leads out of the repository. Source of the format:
    git-cat-file(1), --follow-symlinks.
    """
    options = ("--batch-check=%(objecttype) %(objectname)", "--follow-symlinks")
    first, _, _ = _git(where, "cat-file", *options, stdin=name.encode()).partition(b"\n")
    kind, _, found = first.decode(errors="replace").partition(" ")
    return kind, found


def _entries(where: str, tree: str) -> Iterable[_Entry]:
    # Without --full-tree, paths would be relative to the current directory.
    listed = _git(where, "ls-tree", "-r", "-l", "-z", "--full-tree", tree)
    for line in listed.split(b"\0"):
        if line:
            facts, _, name = line.partition(b"\t")
            mode, kind, blob, size = facts.decode().split()
            if kind in ("blob", "commit"):
                bytes_ = int(size) if kind == "blob" else 0
                yield _Entry(os.fsdecode(name), kind, blob, bytes_, mode == _LINK)


def _contents(where: str, blobs: Iterable[str]) -> dict[str, bytes]:
    """Return the contents by blob. Source of the format: git-cat-file(1), BATCH OUTPUT."""
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
        raise UnreadableInput(
            [f"{where}: git is needed to read it, and is not installed; install git"]
        )
    # In English, because messages are compared; and without questions for a password.
    environ = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(  # noqa: S603  no shell, and no option comes from the input
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
        text = done.stderr.decode(errors="replace").strip() or "no words"
        raise UnreadableInput([f"{where}: {_cured(where, text)}"])
    return done.stdout


def _cured(where: str, text: str) -> str:
    """Return the message of git, with a cure."""
    words = " ".join(line.strip() for line in text.splitlines()).removeprefix("fatal: ")
    revision, _, path = where.partition(":")
    if "Needed a single revision" in words:
        return (
            f"git does not know the revision {revision} here; in a shallow clone fetch it first, "
            f"as in: git fetch origin {revision}"
        )
    if "does not exist" in words:
        return (
            f"git reports: {words}; paths go from the top of the repository, and from here as "
            f"{revision}:./{path}"
        )
    return f"git reports: {words}"


def end_of(link: str, links: Mapping[str, str]) -> str:
    """Return the final target of a link; `links` has all links of the folder with their targets.

    Names are relative to the folder. A target that starts with `..` or a slash is outside of it,
    and a target that is still in `links` is part of a cycle.

    >>> end_of("a.yaml", {"a.yaml": "deep/b.yaml", "deep/b.yaml": "../c.yaml"})
    'c.yaml'
    """
    name = link
    for _ in range(_MOST):
        if name not in links:
            break
        name = posixpath.normpath(posixpath.join(posixpath.dirname(name), links[name]))
    return name


def is_hidden(name: str) -> bool:
    """Return whether reading a folder skips it: a part of its path starts with a dot."""
    return any(part.startswith(".") for part in name.split("/"))


def is_folder_in(name: str, entries: Collection[str]) -> bool:
    """Return whether it is a folder whose files are read anyway."""
    return name == "." or (
        not is_hidden(name) and any(entry.startswith(f"{name}/") for entry in entries)
    )
