"""`fairlead test`: colours and the schema; golden/sessions/ has what it reports."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tests.policy_tests.writing import WORKERS_ON_SPOT, case
from webhook.cli.test import command


def test_terminals_get_colour_and_pipes_do_not(tmp_path: Path) -> None:
    """As everywhere in the command."""
    (tmp_path / "workers.yaml").write_text(WORKERS_ON_SPOT)
    (tmp_path / "workers.test.yaml").write_text(case("{runsOn: [spot-1]}"))
    assert "\x1b" not in CliRunner().invoke(command, [str(tmp_path)]).stdout
    assert "\x1b[32mok" in CliRunner().invoke(command, [str(tmp_path)], color=True).stdout


def test_the_schema_is_printed_for_editors() -> None:
    """Without a path: it is not about any folder."""
    printed = CliRunner().invoke(command, ["--schema"]).stdout
    assert json.loads(printed)["title"] == "Fairlead PolicyTest"
