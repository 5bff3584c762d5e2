"""`fairlead sandbox` where there is none of a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.wording import mentions
from webhook.cli import fairlead


@pytest.mark.parametrize("subcommand", ["down", "status", "kubeconfig"])
def test_for_a_name_without_a_sandbox_the_others_are_named(
    subcommand: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path))

    def reported() -> str:
        done = CliRunner().invoke(fairlead, ["sandbox", subcommand])
        return f"{done.output}{done.exception or ''}"

    assert "--name:" not in reported()
    for name in ("train", "other"):
        (tmp_path / "sandboxes" / name).mkdir(parents=True)
    mentions(reported(), "sandbox default", "--name: other, train")
