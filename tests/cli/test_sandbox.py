"""`fairlead sandbox` where there is none of a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.wording import mentions
from webhook.cli import fairlead
from webhook.cli.exit_codes import FAILED


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


def test_eval_of_a_sandbox_that_does_not_start_leads_kubectl_to_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path))
    (tmp_path / "policy.yaml").write_text("kind: PlacementPolicy\n")
    command = ["sandbox", "up", "--policies", str(tmp_path)]
    done = CliRunner().invoke(fairlead, command)
    assert done.exit_code == FAILED
    assert done.stdout == "export KUBECONFIG=/dev/null; false\n"
