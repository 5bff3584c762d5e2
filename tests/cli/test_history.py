"""Every command that decides on files takes a history, and gives one answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cli.files import NODES, POD
from tests.policy_tests.writing import CLASS, policy, verdict
from tests.wording import Wording, mentions
from webhook.cli import fairlead

THEN = "{afterDisruptions: 2, within: 1h, afterPending: 20m, then: Prevent}"
POLICIES = CLASS + policy(
    "on-spot", f"overrides: {{capacity: [{{class: spot, mode: Constrain, fallback: {THEN}}}]}}"
)
RUN = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: r}
spec: {template: {spec: {containers: [{name: main, image: x}]}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with policies, nodes, a pod and a Run."""
    for name, text in (("p", POLICIES), ("nodes", NODES), ("pod", POD), ("run", RUN)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def ask(folder: Path, *words: str) -> Result:
    """Run a command; the names of files are those of the folder."""
    given = [str(folder / word) if word.endswith(".yaml") else word for word in words]
    return CliRunner().invoke(fairlead, given)


COMMANDS = {
    "mutate": ("mutate", "-f", "pod.yaml", "--policies", "p.yaml", "-o", "patch"),
    "explain": ("explain", "-f", "pod.yaml", "--policies", "p.yaml", "-o", "json"),
    "preview": ("run", "preview", "-f", "run.yaml", "--policies", "p.yaml", "-o", "json"),
}


def answered(command: str, result: Result) -> Any:
    """The nodes that admit the pod."""
    found = json.loads(result.stdout)
    if command == "preview":
        (run,) = found["runs"]
        (found,) = run["replicas"]
        return found["nodes"]["after"]["admitted"]
    (pod,) = found["pods"] if command == "explain" else found
    return pod["nodes"]["after"]["admitted"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("history", "on_spot"),
    [
        ((), True),
        (("spot=1",), True),
        (("spot=2",), False),
        (("spot=0,pending=19m59s",), True),
        (("spot=0,pending=20m",), False),
        (("spot=1", "other=5,pending=1h"), True),
    ],
)
def test_each_command_knows_what_a_history_does(
    folder: Path, command: str, history: tuple[str, ...], *, on_spot: bool
) -> None:
    """Two lost nodes within an hour, or 20 minutes without one, and the pod is on other nodes."""
    given = [word for each in history for word in ("--history", each)]
    result = ask(folder, *COMMANDS[command], "--nodes", "nodes.yaml", *given)
    assert result.exit_code == 0, result.output
    wanted = ["spot-1", "spot-2"] if on_spot else ["steady-1"]
    assert answered(command, result) == wanted


def test_diff_compares_what_would_be_after_it(folder: Path) -> None:
    """A change that matters after a fallback only."""
    (folder / "old.yaml").write_text(POLICIES.replace("afterDisruptions: 2", "afterDisruptions: 9"))
    asked = ("diff", "old.yaml", "p.yaml", "--pods", "pod.yaml", "--nodes", "nodes.yaml")
    assert ask(folder, *asked).exit_code == 0
    assert ask(folder, *asked, "--history", "spot=2").exit_code == 1


def test_the_reason_is_shown(folder: Path, wording: Wording) -> None:
    """The mode, the one before it, and when it is given up."""
    explained = ("explain", "-f", "pod.yaml", "--policies", "p.yaml", "--history", "spot=2")
    text = " ".join(ask(folder, *explained).stdout.split())
    mentions(text, "capacity[spot]", "Prevent instead of Constrain", "2 disruptions within 1h")
    wording(text[text.index("Prevent instead") :][:80])


@pytest.mark.parametrize(
    "wrong", ["spot", "=3", "spot=", "spot=11", "spot=-1", "spot=1,pending=1d"]
)
def test_a_wrong_history_is_an_error(folder: Path, wrong: str) -> None:
    """With what is allowed."""
    result = ask(folder, *COMMANDS["mutate"], "--history", wrong)
    assert result.exit_code == 2
    mentions(result.stderr, "--history", repr(wrong), "spot=3")


def test_a_live_pod_has_its_own_history(folder: Path) -> None:
    """So another is refused."""
    result = ask(folder, "explain", "pod/p", "--history", "spot=2")
    assert result.exit_code == 2
    mentions(result.stderr, "--history is for -f")


def test_a_pod_in_a_file_has_none(folder: Path) -> None:
    """Whatever its author writes: the webhook would not believe it."""
    lost = '{"asOf":"2026-01-01T00:00:00Z","events":[{"class":"spot","time":"2026-01-01T00:00:00Z","waitedSeconds":9999}]}'  # noqa: E501
    forged = f"  annotations: {{fairlead.dev/history: '{lost}'}}\nspec:"
    (folder / "pod.yaml").write_text(POD.replace("spec:", forged, 1))
    result = ask(folder, *COMMANDS["mutate"], "--nodes", "nodes.yaml")
    assert answered("mutate", result) == ["spot-1", "spot-2"]
    removed = ask(folder, "mutate", "-f", "pod.yaml", "--policies", "p.yaml")
    assert "-    fairlead.dev/history" in removed.stdout


@pytest.mark.parametrize(
    ("history", "node"),
    [("{spot: {disruptions: 1}}", "spot-1"), ("{spot: {pending: 20m}}", "steady-1")],
)
def test_a_policy_test_gives_one(history: str, node: str) -> None:
    """By class."""
    found = verdict(f"{{runsOn: [{node}]}}", more=f"history: {history}", policies=POLICIES)
    assert not found.failures
