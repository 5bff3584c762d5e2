"""`fairlead diff` in a git repository; golden/sessions/diff.yaml has what it prints about files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.files import POD, POLICIES
from tests.questions.diff.repository import Repository
from webhook.cli.diff import command


def test_a_revision_is_compared_with_the_work_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a CI job does, and an author before."""
    repository = Repository(tmp_path / "repository")
    monkeypatch.chdir(repository.folder)
    repository.write("policies/p.yaml", POLICIES)
    repository.write("pod.yaml", POD)
    repository.commit()
    repository.write("policies/p.yaml", POLICIES.replace("Constrain", "Prevent"))
    runner = CliRunner()
    arguments = ["main:policies", "policies", "--pods", "pod.yaml"]
    result = runner.invoke(command, arguments)
    assert result.exit_code == 1
    assert "capacity[spot]: Prevent (before: Constrain)" in result.stdout
    repository.commit()
    assert runner.invoke(command, arguments).exit_code == 0
    assert runner.invoke(command, ["main~1:policies", *arguments[1:]]).exit_code == 1
