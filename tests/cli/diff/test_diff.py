"""How `fairlead diff` ends; golden/sessions/diff.yaml has what it prints about files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.diff.repository import Repository
from tests.cli.files import NODES, POD, POLICIES, REJECTED
from tests.policy_tests.writing import CLASS, policy
from webhook.cli.diff import command


@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [
        ("changed", (1, 1, 1, 1)),
        ("unplaceable", (0, 1, 1, 0)),
        ("rejected", (0, 0, 1, 0)),
        ("never", (0, 0, 0, 0)),
    ],
)
def test_the_exit_code_is_what_was_asked_for(
    tmp_path: Path, fail_on: str, codes: tuple[int, ...]
) -> None:
    """Of pods that are placed differently, left without a node, rejected, and admitted again."""
    nodes = NODES.replace("pool: steady}", "pool: steady, arch: arm64}")
    files = {
        "nodes": nodes,
        "old": POLICIES,
        "new": POLICIES.replace("Constrain", "Prevent"),
        "nowhere": CLASS + policy("nowhere", "overrides: {nodeSelector: {pool: none}}"),
        "strict": CLASS + REJECTED,
        "empty": CLASS,
        "pod": POD,
        "arm": POD.replace("spec:\n", "spec:\n  nodeSelector: {arch: arm64}\n"),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = []
    for pods, old, new in (
        ("pod", "old", "new"),
        ("pod", "old", "nowhere"),
        ("arm", "empty", "strict"),
        ("arm", "strict", "empty"),
    ):
        asked = [tmp_path / old, tmp_path / new, "--pods", tmp_path / pods, "--fail-on", fail_on]
        arguments = map(str, [*asked, "--nodes", tmp_path / "nodes"])
        found.append(CliRunner().invoke(command, [*arguments]).exit_code)
    assert tuple(found) == codes


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
