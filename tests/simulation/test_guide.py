"""The comparisons of guides are what comes out."""

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
    """Of policies; the classes are those of the first page."""
    monkeypatch.chdir(tmp_path)
    (classes,) = re.findall(
        r"```yaml\n# (mine/classes\.yaml)\n(.*?)```",
        (GUIDES / "part-on-spot.md").read_text(),
        re.DOTALL,
    )
    stdout, shown = compared("simulate.md", classes)
    assert stdout == shown


def test_what_gangs_save_is_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same Runs with gangs and without, up to what is assumed."""
    monkeypatch.chdir(tmp_path)
    stdout, shown = compared("start-all-at-once.md")
    assert stdout.partition("\nAssumed:")[0] == shown


def compared(guide: str, *files: tuple[str, str]) -> tuple[str, str]:
    """What the page's command prints, and what the page shows. Each file is the block after its
    name."""
    page = (GUIDES / guide).read_text()
    named = r"`([\w/-]+\.yaml)`[^\n]*\n\n```yaml\n(.*?)```"
    for name, text in [*files, *re.findall(named, page, re.DOTALL)]:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    ((first, command, shown),) = re.findall(
        r"```console\n\$ ([^\n]*)\n\$ fairlead (run simulate .*?)```[^`]*```text\n(.*?)```",
        page,
        re.DOTALL,
    )
    subprocess.run(["sh", "-c", first], check=True)
    done = CliRunner().invoke(fairlead, shlex.split(command.replace("\\\n", " ")))
    assert done.exit_code == 0, done.output
    return done.stdout, shown
