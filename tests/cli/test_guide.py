"""The guides to check, preview and explain show what the commands print; kinds are listed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from webhook.cli import fairlead
from webhook.workloads.by_kind import KINDS

DOCS = Path(__file__).parents[2] / "docs"
# The second page uses the files of the first.
GUIDE = "".join((DOCS / "guides" / name).read_text() for name in ("cli.md", "explain.md"))
WORKLOADS = (DOCS / "reference" / "workloads.md").read_text()


def test_every_example_is_as_the_guide_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files, its commands, and their output to the letter."""
    for block in re.findall(r"```ya?ml\n(.*?)```", GUIDE, re.DOTALL):
        file = tmp_path / block.split("\n")[0].removeprefix("# ")
        file.parent.mkdir(exist_ok=True)
        file.write_text(block)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"```console\n\$ ([^\n]*)\n(.*?)```", GUIDE, re.DOTALL)
    for command, shown in commands:
        result = CliRunner().invoke(fairlead, shlex.split(command)[1:])
        assert result.output.rstrip() == shown.rstrip(), command
    assert len(commands) == 5


def test_every_kind_that_is_known_is_on_the_page_of_workloads() -> None:
    """In the table of what is added to pods; PodTemplates get nothing."""
    missing = [kind for _, kind in KINDS if kind not in WORKLOADS]
    assert missing == ["PodTemplate"]
