"""The two policy sets of a comparison: from a folder, a git revision or a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from webhook.errors import UnreadableInput
from webhook.judgement.set_judgement import load_sound
from webhook.policy.load import load
from webhook.questions.offline import CURE, check_not_empty
from webhook.server.folder import is_policy_file, read_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.policy.policy_set import PolicySet

# Seconds. git reads locally, unless it must fetch objects of a partial clone.
_GIT_TIMEOUT_SECONDS: Final = 120


def read_set(text: str, *, sound: bool) -> PolicySet:
    """Return the set of a folder or a revision; `sound`: one that could come to serve.

    Raises UnreadableInput and InvalidDocuments.
    """
    files = read_folder(text) if Path(text).exists() else read_revision(text)
    check_not_empty(files, text, f"; {CURE}")
    return load_sound(files) if sound else load(files).policies


def read_revision(where: str) -> dict[str, bytes]:
    """Return the policy files of REV:PATH by name, a folder with all in it or one file.

    Names start with REV:PATH. A folder is read as any folder is, from a copy of it. Links to other
    places are an error, because their target in that revision is unknown, and so are submodules.
    Raises UnreadableInput, with the message of git.
    """
    revision, _, _ = where.partition(":")
    if not revision or revision.startswith("-"):
        raise UnreadableInput([f"{where}: want REV:PATH, as in main:policies"])
    _git(where, "rev-parse", "--verify", f"{revision}^{{tree}}")
    _git(where, "rev-parse", where)
    kind, object_hash = _followed(where, where)
    if kind == "blob":
        return {where: _git(where, "cat-file", "blob", object_hash)}
    if kind != "tree":
        raise UnreadableInput([f"{where}: no file or folder of this repository; name one"])
    with TemporaryDirectory(prefix="fairlead-diff-") as folder:
        top = f"{os.path.realpath(folder)}/policies"
        Path(top).mkdir()
        # An index and a work tree of its own: nothing of the repository's changes.
        variables = {"GIT_INDEX_FILE": f"{folder}/index", "GIT_WORK_TREE": top}
        _git(where, "read-tree", object_hash, variables=variables)
        _git(where, "-c", "core.symlinks=true", "checkout-index", "--all", variables=variables)
        if problems := [*_submodules(where, object_hash), *_links_elsewhere(where, top)]:
            raise UnreadableInput(problems)
        shown = where.rstrip("/")
        try:
            files = read_folder(top)
        except UnreadableInput as error:
            raise UnreadableInput(
                [problem.replace(top, shown) for problem in error.problems]
            ) from None
    return {name.replace(top, shown, 1): content for name, content in files.items()}


def _submodules(where: str, tree: str) -> Iterator[str]:
    # Without --full-tree, paths would be relative to the current directory.
    listed = _git(where, "ls-tree", "-r", "-z", "--full-tree", tree)
    for entry in listed.split(b"\0"):
        facts, _, name = os.fsdecode(entry).partition("\t")
        if " commit " in facts and not any(part.startswith(".") for part in name.split("/")):
            yield (
                f"{where}/{name}: a submodule, whose files are in another repository; put the "
                "files themselves there"
            )


def _links_elsewhere(where: str, top: str) -> Iterator[str]:
    """Yield errors about links out of the folder that may lead to policy files."""
    within = where if where.endswith((":", "/")) else f"{where}/"
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in (*folders, *files):
            path = Path(folder, name)
            # Unlike Path.resolve, it takes a circle of links.
            end = Path(os.path.realpath(path))
            if name.startswith(".") or not path.is_symlink() or end.is_relative_to(top):
                continue
            link = path.relative_to(top)
            kind, _ = _followed(where, f"{within}{link}")
            if is_policy_file(name) or kind in ("tree", "symlink"):
                yield (
                    f"{where}/{link}: a link to {path.readlink()}, which is not a policy file in "
                    "this folder; put the file itself there"
                )


def _followed(where: str, name: str) -> tuple[str, str]:
    """Return the type of REV:PATH after following links, blob or tree, and its hash.

    Another type is an error: `symlink` leads out of the repository. Source of the format:
    git-cat-file(1), --follow-symlinks.
    """
    options = ("--batch-check=%(objecttype) %(objectname)", "--follow-symlinks")
    first, _, _ = _git(where, "cat-file", *options, stdin=name.encode()).partition(b"\n")
    kind, _, object_hash = first.decode(errors="replace").partition(" ")
    return kind, object_hash


def _git(
    where: str, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] = {}
) -> bytes:
    program = shutil.which("git")
    if program is None:
        raise UnreadableInput(
            [f"{where}: git is needed to read it, and is not installed; install git"]
        )
    # In English, because messages are compared; and without questions for a password.
    environ = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **variables}
    try:
        done = subprocess.run(  # noqa: S603  no shell, and no option comes from the input
            [program, *arguments],
            input=stdin,
            capture_output=True,
            env=environ,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnreadableInput(
            [f"{where}: git did not answer within {_GIT_TIMEOUT_SECONDS} s"]
        ) from error
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip() or "no words"
        raise UnreadableInput([f"{where}: {_cured(where, text)}"])
    return done.stdout


def _cured(where: str, text: str) -> str:
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
