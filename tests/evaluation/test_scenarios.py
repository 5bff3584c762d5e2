"""Every face that needs no cluster gives the same answer about the pod of a scenario."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from tests.admission.test_workload_handler import Webhook
from tests.scenarios import Json, Scenario, each_scenario
from webhook.cli import fairlead
from webhook.controller.policies.pod_results import NO_NODE, judge_pod
from webhook.decision.arrival import Cluster
from webhook.decision.prospects import Prospects
from webhook.evaluation.plugins import READ_OBJECTS, inputs_among
from webhook.evaluation.result import schema
from webhook.evaluation.world import World
from webhook.names import PLACEMENT, PREFIX, REPLICA_INDEX, REPLICAS
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import by_name, parse_node
from webhook.policy.load import load


def ask(scenario: Scenario, *words: str) -> Result:
    """Run a command that decides on the pod."""
    options = ["--nodes", f"{scenario.folder}/nodes.yaml"] if scenario.nodes else []
    options += ["--namespaces", f"{scenario.folder}/cluster.yaml"]
    return CliRunner().invoke(fairlead, [*words, *options])


def decide(scenario: Scenario, command: str, output: str) -> Result:
    """Run mutate or explain in one format."""
    fail = ["--fail-on", "no-node"] if scenario.nodes else []
    files = ["-f", f"{scenario.folder}/pod.yaml", "--policies", f"{scenario.folder}/policies.yaml"]
    return ask(scenario, command, *files, "-o", output, *fail)


def run_test(scenario: Scenario) -> Result:
    """Run a PolicyTest that expects what the scenario says of nodes."""
    nodes = [
        {
            "name": node["metadata"]["name"],
            "labels": node["metadata"].get("labels", {}),
            "taints": node.get("spec", {}).get("taints", []),
            "unschedulable": node.get("spec", {}).get("unschedulable", False),
            "allocatable": node["status"]["allocatable"],
        }
        for node in scenario.nodes or ()
    ]
    expect: Json = (
        {"result": "placed"} if scenario.admitted is None else {"runsOn": scenario.admitted}
    )
    if scenario.namespace:
        expect = {"result": "not-sent"}
    if scenario.applies is not None:
        expect["policies"] = scenario.applies
    where = scenario.namespace or "default"
    case = {"name": "the scenario", "pod": scenario.pod, "namespace": where, "expect": expect}
    case["now"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "PolicyTest"}
    read = [each for each in scenario.objects if each["kind"] in READ_OBJECTS]
    document = {**head, "cluster": {"objects": read}, "nodes": nodes, "tests": [case]}
    scenario.write("p.test.yaml", document)
    return CliRunner().invoke(
        fairlead,
        [
            "test",
            f"{scenario.folder}/p.test.yaml",
            "--policies",
            f"{scenario.folder}/policies.yaml",
        ],
    )


def preview(scenario: Scenario, output: str) -> Result:
    """Explain as JSON, or preview, a Run one of whose replicas is the pod."""
    given = scenario.pod["metadata"]
    labels = {key: text for key, text in given["labels"].items() if not key.startswith(PREFIX)}
    metadata = {"annotations": given.get("annotations", {}), "labels": labels}
    template = {"metadata": metadata, "spec": scenario.pod["spec"]}
    count = int(scenario.pod["metadata"]["labels"].get(REPLICAS, 1))
    spec = {"kind": "job", "template": template, "replicas": {"worker": {"count": count}}}
    metadata = {"name": "r", "namespace": scenario.namespace or "default"}
    head = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "Run", "metadata": metadata}
    scenario.write("run.yaml", {**head, "spec": spec})
    files = ["-f", f"{scenario.folder}/run.yaml", "--policies", f"{scenario.folder}/policies.yaml"]
    command = "explain" if output == "json" else "preview"
    return ask(scenario, command, *files, "-o", output)


@pytest.fixture
def scenario(path: Path, tmp_path: Path) -> Scenario:
    return Scenario(path, tmp_path)


@each_scenario
@pytest.mark.parametrize(
    ("command", "output"),
    [
        *(("preview", output) for output in ("diff", "text", "yaml", "json", "patch", "name")),
        *(("explain", output) for output in ("text", "json")),
    ],
)
def test_the_exit_code_does_not_depend_on_the_format(
    scenario: Scenario, command: str, output: str
) -> None:
    """A refusal and a pod without nodes give exit code 1 in each, with the policy on stderr."""
    result = decide(scenario, command, output)
    assert result.exit_code == int(scenario.fails), result.output
    if output in ("diff", "yaml"):
        assert "overhead" not in result.stdout, "a class may change it"
    assert all(text in result.output for text in scenario.refused), result.output


@each_scenario
def test_the_same_nodes_are_named(scenario: Scenario) -> None:
    """By mutate and explain; diff counts them, and calls no change an improvement."""
    policies = str(scenario.folder / "policies.yaml")
    diff = ask(scenario, "diff", "/dev/null", policies, "--pods", f"{scenario.folder}/pod.yaml")
    compared = ask(scenario, "diff", "/dev/null", policies, "--pods", f"{scenario.folder}/pod.yaml",
                            "-o", "json", "--fail-on", "unplaceable")  # fmt: skip
    if scenario.nodes is None:
        before_too = scenario.refused_before
        wanted = "rejected before and after" if before_too else "nodes not checked"
        assert wanted in diff.stdout
        return
    (patch,) = json.loads(decide(scenario, "preview", "patch").stdout)["pods"]
    Draft202012Validator(schema()).validate(patch)
    (listed,) = json.loads(decide(scenario, "explain", "json").stdout)["pods"]
    assert patch == listed
    (pod,) = json.loads(decide(scenario, "explain", "json").stdout)["pods"]
    assert pod["nodes"]["before"]["admitted"] == scenario.before
    assert (pod["nodes"]["after"] or pod["nodes"]["before"])["admitted"] == scenario.admitted
    assert pod["nodes"]["evicting"] == scenario.evicting
    assert pod["nodes"]["notJudged"] == scenario.not_judged
    text = " ".join(decide(scenario, "explain", "text").stdout.split())
    assert ("not judged" in text) == bool(scenario.not_judged and scenario.admitted), text
    assert pod["nodes"]["onDemand"] == scenario.on_demand
    assert any(" it after " in text for text in pod["warnings"]) == bool(scenario.evicting)
    stranded = scenario.is_stranded and bool(scenario.before or scenario.refused_before)
    assert compared.exit_code == int(stranded), compared.output
    for change in json.loads(compared.stdout)["changes"]:
        assert change["new"]["nodes"] == len(scenario.admitted or ())
        if change["old"]["result"] != "rejected":
            assert change["old"]["nodes"] == len(scenario.before or ())
            assert (change["change"] == "unplaceable") == stranded


@each_scenario
def test_every_face_begins_with_the_same_answer(scenario: Scenario) -> None:
    """Whether the pod is refused, or no node admits it; else on how many nodes it can run, at most
    if something is not judged; and that nodes were not checked.
    """
    (pod,) = json.loads(decide(scenario, "explain", "json").stdout)["pods"]
    answer = pod["answer"]
    title = f"{pod['object']} in {pod['namespace']}"
    line = f"{title}: {answer}".split()
    for command, output in (("explain", "text"), ("preview", "diff")):
        text = decide(scenario, command, output).stdout
        assert text.split()[: len(line)] == line, text
    (row,) = decide(scenario, "preview", "text").stdout.splitlines()[1:]
    assert row.split()[:2] == [pod["namespace"], pod["object"]]
    assert row.endswith(f"  {answer}")
    (patch,) = json.loads(decide(scenario, "preview", "patch").stdout)["pods"]
    assert patch["answer"] == answer
    assert answer.startswith(("rejected: ", "the API server refuses it: ")) == bool(
        scenario.refused
    )
    assert all(text in answer for text in scenario.refused)
    if scenario.refused:
        return
    assert answer.startswith("no node admits it: 0 of ") == scenario.is_stranded
    assert answer.endswith("; nodes not checked") == (scenario.nodes is None)
    if scenario.admitted:
        most = "at most " if scenario.not_judged else ""
        assert f"can run on {most}{len(scenario.admitted)} of {len(scenario.nodes or ())}" in answer
    assert all(field in answer for field in scenario.not_judged) or not scenario.admitted


@each_scenario
def test_the_same_policies_apply(scenario: Scenario) -> None:
    """By explain, and by the stamp that mutate prints."""
    if scenario.applies is None:
        return
    (pod,) = json.loads(decide(scenario, "explain", "json").stdout)["pods"]
    assert [e["name"] for e in pod["policies"] if e["answer"] == "applies"] == scenario.applies
    (stored,) = yaml.safe_load_all(decide(scenario, "preview", "yaml").stdout)
    stamp = json.loads(stored["metadata"].get("annotations", {}).get(PLACEMENT, "{}"))
    assert list(stamp.get("policies", ())) == scenario.applies


@each_scenario
def test_a_refusal_is_a_rejection_in_diff_and_a_failure_in_test(scenario: Scenario) -> None:
    """With the API server's reason, and the policy that causes it."""
    tested = run_test(scenario)
    assert tested.exit_code == int(bool(scenario.refused)), tested.output
    output = "".join(tested.output.split())
    assert all(text in output for text in scenario.refused), tested.output
    result = ask(scenario, "diff", "/dev/null", str(scenario.folder / "policies.yaml"),
                          "--pods", f"{scenario.folder}/pod.yaml", "-o", "json")  # fmt: skip
    changes = json.loads(result.stdout)["changes"]
    rejected = [each for each in changes if each["change"] == "rejected"]
    assert bool(rejected) == (bool(scenario.refused) and not scenario.refused_before)
    for change in rejected:
        assert all(text in change["new"]["reason"] for text in scenario.refused)


@each_scenario
def test_the_pod_of_a_run_gets_the_same_answer(scenario: Scenario) -> None:
    """By explain and preview, of a Run one of whose replicas is the pod."""
    if scenario.is_owned:
        return
    found = preview(scenario, "json")
    assert found.exit_code == preview(scenario, "pods").exit_code == int(bool(scenario.refused))
    index = int(scenario.pod["metadata"]["labels"].get(REPLICA_INDEX, 0))
    # Of a part of a split, the first is evaluated, and stands for the others.
    parts = {each["indexes"][0]: each for each in json.loads(found.stdout)["pods"]}
    replicas = parts[max(first for first in parts if first <= index)]
    Draft202012Validator(schema()).validate(replicas)
    said = json.dumps([replicas["refusals"], replicas["reason"]])
    assert all(text in said for text in scenario.refused), said
    if nodes := replicas["nodes"]:
        assert (nodes["after"] or nodes["before"])["admitted"] == scenario.admitted
        assert nodes["evicting"] == scenario.evicting


@each_scenario
def test_the_author_of_a_workload_is_told_the_same(scenario: Scenario) -> None:
    """By the webhook, of a Job whose pod it is: a refusal, or that no node admits it.

    It may not read LimitRanges, and is not asked about namespaces that are not sent.
    """
    ranges = any(each["kind"] == "LimitRange" for each in scenario.objects)
    if scenario.namespace or scenario.is_owned or ranges:
        return
    policies = load({"p.yaml": scenario.policies.encode()}).policies
    nodes = [parse_node(node) for node in scenario.nodes or ()]
    webhook = Webhook(
        policies,
        unplaceable=Prospects(NodeGroups(nodes)).unplaceable if nodes else lambda *_: "",
        nodes=nodes or None,
        plugins=lambda: inputs_among(scenario.objects),
    )
    pod = {"metadata": scenario.pod["metadata"], "spec": scenario.pod["spec"]}
    made = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": pod}}
    made["metadata"] = {"name": "train", "namespace": "ml-team", "uid": "u"}
    told = " ".join(webhook.told(made))
    assert all(text in told for text in scenario.refused), told
    assert ("would be rejected" in told) == bool(scenario.refused), told
    named = "nodeName" in scenario.pod["spec"]
    stranded = scenario.is_stranded and not (named or scenario.rejected)
    assert ("0 of " in told) == stranded, told


@each_scenario
def test_a_policy_report_says_the_same_of_the_stored_pod(scenario: Scenario) -> None:
    """That no node admits it, and nothing else is wrong with it."""
    if scenario.refused:
        return
    policies = load({"p.yaml": scenario.policies.encode()}).policies
    nodes = [parse_node(node) for node in scenario.nodes or ()]
    inputs = inputs_among(scenario.objects)
    where = scenario.namespace or "default"
    world = World(
        policies=policies,
        cluster=Cluster(node=by_name(nodes)),
        namespaces={},
        now=datetime.now(UTC),
        configuration=None,
        classes=None,
        plugins=inputs,
        nodes=nodes,
        server=None,
        history=None,
    )
    pod = {"apiVersion": "v1", "kind": "Pod", **scenario.pod}
    stored = world.evaluate(pod, where, led=False).stored()
    stored = {**stored, "metadata": {**stored["metadata"], "namespace": where, "uid": "u"}}
    judged = judge_pod(stored, world, Prospects(NodeGroups(nodes)) if nodes else None, led=False)
    assert judged is not None
    found = {each.policy for each in judged.results if each.result == "fail"}
    tried = {each.policy for each in judged.results if each.rule == "audit"}
    stranded = scenario.is_stranded and "nodeName" not in scenario.pod["spec"]
    assert found - tried == ({NO_NODE} if stranded else set()), judged


@each_scenario
def test_a_pod_that_is_not_sent_is_reported_by_each_command(scenario: Scenario) -> None:
    """With the reason, as a result of its own, and of no run for a comparison."""
    (explained,) = json.loads(decide(scenario, "explain", "json").stdout)["pods"]
    previewed = json.loads(preview(scenario, "json").stdout)["pods"]
    found = [explained["result"], *(each["result"] for each in previewed)]
    assert ("not-sent" in found) == (set(found) == {"not-sent"}) == bool(scenario.namespace)
    told = " ".join(decide(scenario, "explain", "text").stdout.split())
    assert ("not sent to the webhook" in told) == bool(scenario.namespace and not scenario.refused)
    if scenario.namespace and not scenario.refused:
        assert scenario.namespace in told
        printed = decide(scenario, "preview", "yaml")
        assert yaml.safe_load(printed.stdout) == {"apiVersion": "v1", "kind": "Pod", **scenario.pod}
        assert "sent to the webhook" in printed.stderr
        files = ("diff", "/dev/null", f"{scenario.folder}/policies.yaml", "-o", "json")
        compared = json.loads(ask(scenario, *files, "--pods", f"{scenario.folder}/pod.yaml").stdout)
        assert (compared["pods"]["total"], compared["pods"]["ofNoRun"]) == (0, 1)
