"""Every face gives the same answer about one pod: a scenario is one file of golden/scenarios."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from webhook.cli import fairlead
from webhook.evaluation.plugins import READ_BY_PLUGINS
from webhook.evaluation.result import schema
from webhook.names import PLACEMENT, RUN

SCENARIOS = sorted((Path(__file__).parents[1] / "golden" / "scenarios").glob("*.yaml"))
each_scenario = pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)


class Scenario:
    """The files of one scenario in a folder, and what is expected.

    admitted, before: the nodes that admit the pod with and without the policies; None if the
                      scenario has no nodes
    evicting:         the nodes that evict the pod, and after how many seconds
    refused:          texts that a refusal names; empty if the API server takes the pod
    rejected:         texts of the webhook's rejection
    applies:          the policies that apply; None if the scenario does not say
    objects:          what else is in the cluster
    """

    def __init__(self, path: Path, folder: Path) -> None:
        given = yaml.safe_load(path.read_text())
        self.folder = folder
        self.pod = {"metadata": {"name": "p", "labels": {RUN: "r"}}, **given["pod"]}
        self.nodes = given.get("nodes")
        self.admitted: list[str] | None = given.get("admitted")
        self.before: list[str] | None = given.get("before")
        self.evicting: dict[str, int] = given.get("evicting", {})
        self.rejected: list[str] = given.get("rejected", [])
        self.refused: list[str] = given.get("refused", self.rejected)
        self.applies: list[str] | None = given.get("applies")
        self.objects = given.get("objects", [])
        self._write("policies.yaml", given["policies"])
        self._write("pod.yaml", {"apiVersion": "v1", "kind": "Pod", **self.pod})
        nodes = [{"kind": "Node", **node} for node in self.nodes or ()]
        self._write("nodes.yaml", {"kind": "List", "items": nodes})
        self._write("cluster.yaml", {"kind": "List", "items": self.objects})

    @property
    def fails(self) -> bool:
        """Whether the answer is bad news: refused, or no node."""
        return bool(self.refused) or self.admitted == []

    def ask(self, *words: str) -> Result:
        """Run a command that decides on the pod."""
        options = ["--nodes", f"{self.folder}/nodes.yaml"] if self.nodes else []
        options += ["--namespaces", f"{self.folder}/cluster.yaml"] if self.objects else []
        return CliRunner().invoke(fairlead, [*words, *options])

    def decide(self, command: str, output: str) -> Result:
        """Run mutate or explain in one format."""
        fail = ["--fail-on", "no-node"] if self.nodes else []
        files = ["-f", f"{self.folder}/pod.yaml", "--policies", f"{self.folder}/policies.yaml"]
        return self.ask(command, *files, "-o", output, *fail)

    def test(self) -> Result:
        """Run a PolicyTest that expects what the scenario says of nodes."""
        nodes = [
            {
                "name": node["metadata"]["name"],
                "labels": node["metadata"].get("labels", {}),
                "allocatable": node["status"]["allocatable"],
            }
            for node in self.nodes or ()
        ]
        expect = {"result": "placed"} if self.admitted is None else {"runsOn": self.admitted}
        case = {"name": "the scenario", "pod": self.pod, "expect": expect}
        head = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "PolicyTest"}
        read = [each for each in self.objects if each["kind"] in READ_BY_PLUGINS]
        document = {**head, "cluster": {"objects": read}, "nodes": nodes, "tests": [case]}
        self._write("p.test.yaml", document)
        return CliRunner().invoke(
            fairlead,
            ["test", f"{self.folder}/p.test.yaml", "--policies", f"{self.folder}/policies.yaml"],
        )

    def preview(self, output: str) -> Result:
        """Run `run preview` on a Run whose only replica is the pod."""
        given = self.pod["metadata"].get("annotations", {})
        template = {"metadata": {"annotations": given}, "spec": self.pod["spec"]}
        spec = {"kind": "job", "template": template, "replicas": {"worker": {"count": 1}}}
        head = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "Run", "metadata": {"name": "r"}}
        self._write("run.yaml", {**head, "spec": spec})
        files = ["-f", f"{self.folder}/run.yaml", "--policies", f"{self.folder}/policies.yaml"]
        return self.ask("run", "preview", *files, "-o", output)

    def _write(self, name: str, content: Any) -> None:
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        (self.folder / name).write_text(text)


@pytest.fixture
def scenario(path: Path, tmp_path: Path) -> Scenario:
    """The scenario of the file."""
    return Scenario(path, tmp_path)


@each_scenario
@pytest.mark.parametrize(
    ("command", "output"),
    [
        *(("mutate", output) for output in ("diff", "yaml", "json", "patch", "name")),
        *(("explain", output) for output in ("text", "json")),
    ],
)
def test_the_exit_code_does_not_depend_on_the_format(
    scenario: Scenario, command: str, output: str
) -> None:
    """A refusal and a pod without nodes give exit code 1 in each, with the policy on stderr."""
    result = scenario.decide(command, output)
    assert result.exit_code == int(scenario.fails), result.output
    if output in ("diff", "yaml"):
        assert "overhead" not in result.stdout, "a class may change it"
    assert all(text in result.output for text in scenario.refused), result.output


@each_scenario
def test_the_same_nodes_are_named(scenario: Scenario) -> None:
    """By mutate and explain; diff counts them, and calls no change an improvement."""
    policies = str(scenario.folder / "policies.yaml")
    diff = scenario.ask("diff", "/dev/null", policies, "--pods", f"{scenario.folder}/pod.yaml")
    compared = scenario.ask("diff", "/dev/null", policies, "--pods", f"{scenario.folder}/pod.yaml",
                            "-o", "json", "--fail-on", "unplaceable")  # fmt: skip
    if scenario.nodes is None:
        assert "nodes were not checked" in diff.stdout
        return
    (patch,) = json.loads(scenario.decide("mutate", "patch").stdout)
    Draft202012Validator(schema()).validate(patch)
    (listed,) = json.loads(scenario.decide("explain", "json").stdout)["pods"]
    assert patch == listed
    (pod,) = json.loads(scenario.decide("explain", "json").stdout)["pods"]
    assert pod["nodes"]["before"]["admitted"] == scenario.before
    assert (pod["nodes"]["after"] or pod["nodes"]["before"])["admitted"] == scenario.admitted
    assert pod["nodes"]["evicting"] == scenario.evicting
    assert any("evicts it after" in text for text in pod["warnings"]) == bool(scenario.evicting)
    stranded = bool(scenario.before) and not scenario.admitted
    assert compared.exit_code == int(stranded), compared.output
    for change in json.loads(compared.stdout)["changes"]:
        assert change["old"]["nodes"] == len(scenario.before or ())
        assert change["new"]["nodes"] == len(scenario.admitted or ())
        assert (change["change"] == "unplaceable") == stranded


@each_scenario
def test_the_same_policies_apply(scenario: Scenario) -> None:
    """By explain, and by the stamp that mutate prints."""
    if scenario.applies is None:
        return
    (pod,) = json.loads(scenario.decide("explain", "json").stdout)["pods"]
    assert [e["name"] for e in pod["policies"] if e["answer"] == "applies"] == scenario.applies
    (stored,) = yaml.safe_load_all(scenario.decide("mutate", "yaml").stdout)
    assert list(json.loads(stored["metadata"]["annotations"][PLACEMENT])["policies"]) == (
        scenario.applies
    )


@each_scenario
def test_a_refusal_is_a_rejection_in_diff_and_a_failure_in_test(scenario: Scenario) -> None:
    """With the API server's reason, and the policy that causes it."""
    tested = scenario.test()
    assert tested.exit_code == int(bool(scenario.refused)), tested.output
    output = "".join(tested.output.split())
    assert all(text in output for text in scenario.refused), tested.output
    result = scenario.ask("diff", "/dev/null", str(scenario.folder / "policies.yaml"),
                          "--pods", f"{scenario.folder}/pod.yaml", "-o", "json")  # fmt: skip
    changes = json.loads(result.stdout)["changes"]
    rejected = [each for each in changes if each["change"] == "rejected"]
    assert bool(rejected) == bool(scenario.refused)
    for change in rejected:
        assert all(text in change["new"]["reason"] for text in scenario.refused)


@each_scenario
def test_the_pod_of_a_run_gets_the_same_answer(scenario: Scenario) -> None:
    """By run preview, of a Run whose only replica is the pod."""
    found = scenario.preview("json")
    assert found.exit_code == scenario.preview("text").exit_code == int(bool(scenario.refused))
    (replicas,) = json.loads(found.stdout)["runs"][0]["replicas"]
    Draft202012Validator(schema()).validate(replicas)
    said = json.dumps([replicas["refusals"], replicas["reason"]])
    assert all(text in said for text in scenario.refused), said
    if nodes := replicas["nodes"]:
        assert (nodes["after"] or nodes["before"])["admitted"] == scenario.admitted
        assert nodes["evicting"] == scenario.evicting
