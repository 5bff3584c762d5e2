"""The guide to `fairlead diff` shows what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.questions.diff.repository import Repository
from webhook.cli import fairlead
from webhook.questions.decisions import NOT_ASKED, PODS

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "diff.md").read_text()


def test_the_example_is_as_the_guide_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files, the policies of main and of the branch, and the answer to the letter."""
    repository = Repository(tmp_path / "repository")
    monkeypatch.chdir(repository.folder)
    for block in re.findall(r"```ya?ml\n(.*?)```", GUIDE, re.DOTALL):
        name = block.split("\n")[0].removeprefix("# ")
        if (repository.folder / name).exists():
            repository.commit()
        repository.write(name, block)
    ((asked, shown),) = re.findall(
        r"```console\n\$ (fairlead diff [^\n]*)\n(.*?)```", GUIDE, re.DOTALL
    )
    result = CliRunner().invoke(fairlead, shlex.split(asked)[1:])
    assert (result.exit_code, result.stderr) == (1, f"note: {NOT_ASKED} {PODS}\n")
    assert result.stdout == shown
