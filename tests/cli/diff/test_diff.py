"""`fairlead diff` in a git repository; golden/sessions/diff.yaml has what it prints about files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.files import POD, POLICIES
from tests.questions.diff.repository import Repository
from tests.wording import mentions
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


_NARROW = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: narrow}
spec: {overrides: {nodeSelector: {pool: a}}}
"""
_RUN = """
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: big}
spec:
  framework: pytorch
  template:
    spec:
      containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: "8"}}}]
  replicas: {worker: {count: COUNT}}
"""
_NODE = """
- apiVersion: v1
  kind: Node
  metadata: {name: POOL, labels: {pool: POOL}}
  status: {allocatable: {nvidia.com/gpu: "8", cpu: "8", pods: "110"}}
"""


@pytest.mark.parametrize(
    ("count", "back", "code", "facts"),
    [
        (2, False, 1, ("at most 1 of 2 run at one time", "before: no limit found")),
        (2, True, 0, ("before: at most 1 of 2 run at one time",)),
        # Both sets leave too little: nothing is taken.
        (3, False, 0, ("at most 1 of 3", "before: at most 2 of 3")),
        (1, False, 0, ()),
    ],
)
def test_a_change_that_takes_the_room_of_a_run_is_shown(
    tmp_path: Path, *, count: int, back: bool, code: int, facts: tuple[str, ...]
) -> None:
    """Each pod has a node under both sets, and the run cannot be whole under one of them."""
    sets = {"wide": _NARROW.replace("nodeSelector: {pool: a}", "labels: {team: a}")}
    sets["narrow"] = _NARROW
    for name, text in sets.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "run.yaml").write_text(_RUN.replace("COUNT", f"{count}"))
    nodes = "".join(_NODE.replace("POOL", pool) for pool in "ab")
    (tmp_path / "nodes.yaml").write_text(f"apiVersion: v1\nkind: List\nitems:{nodes}")
    old, new = reversed(sets) if back else sets
    files = ["--pods", f"{tmp_path}/run.yaml", "--nodes", f"{tmp_path}/nodes.yaml"]
    words = [f"{tmp_path}/{old}.yaml", f"{tmp_path}/{new}.yaml", *files]
    result = CliRunner().invoke(command, [*words, "--fail-on", "unplaceable"])
    assert result.exit_code == code, result.output
    assert ("run at one time" in result.stdout) == bool(facts)
    mentions(result.stdout, *facts)
    assert ("1 object that could before" in " ".join(result.stdout.split())) == bool(code)
