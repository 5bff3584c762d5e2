"""The guide's comparison is what comes out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from webhook.cli import fairlead

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "spot.md"


def test_the_comparison_is_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is the block after its name."""
    section = GUIDE.read_text().partition("## Compare policies beforehand")[2]
    monkeypatch.chdir(tmp_path)
    named = r"`([\w-]+\.yaml)`[^\n]*\n\n```yaml\n(.*?)```"
    for name, text in re.findall(named, section, re.DOTALL):
        Path(name).write_text(text)
    ((command, shown),) = re.findall(
        r"```console\n\$ fairlead (simulate .*?)```\n\n```text\n(.*?)```", section, re.DOTALL
    )
    done = CliRunner().invoke(fairlead, shlex.split(command.replace("\\\n", " ")))
    assert done.exit_code == 0, done.output
    assert done.stdout == shown
