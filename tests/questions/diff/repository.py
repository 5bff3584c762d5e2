"""A git repository in a folder, for tests of what is read from one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ENVIRON = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
}


class Repository:
    """Files that are written and committed; nothing of the user's own settings counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Call git in the folder."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **ENVIRON},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def write(self, name: str, text: str) -> Path:
        """Write a file, with the folders above it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "it")


@pytest.fixture(autouse=True)
def no_repository_but_the_tests_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests from a hook of git has told it where another repository is."""
    for name in os.environ:
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
