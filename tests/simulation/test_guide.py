"""The guide's comparison is what comes out."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from webhook.cli import fairlead

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def test_the_comparison_is_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is the block after its name; the classes are those of the first page."""
    page = (GUIDES / "simulate.md").read_text()
    monkeypatch.chdir(tmp_path)
    named = r"`([\w/-]+\.yaml)`[^\n]*\n\n```yaml\n(.*?)```"
    (classes,) = re.findall(
        r"```yaml\n# (mine/classes\.yaml)\n(.*?)```",
        (GUIDES / "part-on-spot.md").read_text(),
        re.DOTALL,
    )
    for name, text in [classes, *re.findall(named, page, re.DOTALL)]:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    ((copy, command, shown),) = re.findall(
        r"```console\n\$ (for [^\n]*)\n\$ fairlead (run simulate .*?)```[^`]*```text\n(.*?)```",
        page,
        re.DOTALL,
    )
    subprocess.run(["sh", "-c", copy], check=True)
    done = CliRunner().invoke(fairlead, shlex.split(command.replace("\\\n", " ")))
    assert done.exit_code == 0, done.output
    assert done.stdout == shown
